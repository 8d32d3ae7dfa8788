# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gateway_certificate on a machine below a temporary root: with the real openssl, without systemd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import (
    acme,
    certificates,
    places,
    runtime,
    serving,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.authority import Authority
from ansible_collections.baremetal.inference.plugins.modules import gateway_certificate as module

from ..module_utils.gateway.test_certificates import pair

PARAMS: dict[str, Any] = {
    "state": "present",
    "form": "ca",
    "certificate": "",
    "certificate_key": "",
    "names": ["192.0.2.1", "gw1"],
    "name": "gw1",
    "lead": True,
    "request": "",
    "issued": "",
    "email": "ops@example.com",
    "server": "https://acme.invalid/",
}


OPENSSL = certificates.openssl

shown: dict[tuple[tuple[str, ...], bytes], str] = {}
"""Outputs of openssl, by the arguments and the content of the file that the last argument names."""


def show_once(*words: str) -> str:
    """openssl, started once per command and certificate: each start takes longer than the rest of a run."""
    asked = words[:-1], Path(words[-1]).read_bytes()
    if asked not in shown:
        shown[asked] = OPENSSL(*words)
    return shown[asked]


class Machine:
    """A gateway: its files below `root`, its HAProxy, its timers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.serves = ""
        self.running: set[str] = set()
        self.calls: list[tuple[str, ...]] = []
        self.asked: list[str] = []

    def systemctl(self, *words: str) -> str:
        self.calls.append(words)
        if words[:2] == ("enable", "--now"):
            self.running.add(words[2])
        if words[0] in ("stop", "disable"):
            self.running.discard(words[1])
        return ""

    def show(self, units: list[str], properties: list[str]) -> dict[str, dict[str, str]]:
        states = {
            "ActiveState": ("active", "inactive"),
            "UnitFileState": ("enabled", "disabled"),
            "NeedDaemonReload": ("no", "no"),
        }
        return {unit: {key: states[key][unit not in self.running] for key in properties} for unit in units}

    def ask(self, command: str) -> str:
        self.asked.append(command.partition("\n")[0])
        if command.startswith("set ssl cert"):
            return "Transaction created"
        if command.startswith("commit"):
            self.serves = certificates.fingerprint(Path(serving.paths("ca", "", "")[0]))
        return f"SHA1 FingerPrint: {self.serves}" if self.serves else ""


def at(monkeypatch: pytest.MonkeyPatch, root: Path) -> Machine:
    """From here on, the module works on the machine below `root`."""
    machine = Machine(root)
    tls = root / "tls"
    for name, path in {
        "TLS": tls,
        "TLS_SETTINGS": tls / "settings.json",
        "CLIENTS_ROOT": root / "site-ca.pem",
        "CERTIFICATE_COMMAND": root / "sbin/command",
        "CERTIFICATE_LIBRARY": root / "lib/inference_gateway",
    }.items():
        monkeypatch.setattr(places, name, path)
    real = serving.paths
    monkeypatch.setattr(
        serving, "paths", lambda form, *own: (str(tls / "served.pem"), "") if form == "ca" else real(form, *own)
    )
    monkeypatch.setattr(module, "Paths", lambda: type("Paths", (), {"units": root / "units"}))
    monkeypatch.setattr(serving.Paths, "textfiles", root / "textfiles")
    monkeypatch.setattr(systemd, "systemctl", machine.systemctl)
    monkeypatch.setattr(systemd, "show", machine.show)
    monkeypatch.setattr(runtime, "ask", lambda _path: machine.ask)
    monkeypatch.setattr(certificates, "openssl", show_once)
    return machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    (tmp_path / "textfiles").mkdir()
    return at(monkeypatch, tmp_path)


def run(*, check: Any = False, **changes: Any) -> dict[str, Any]:
    """One run, after a run in check mode that must predict whether it changes anything."""
    params = {**PARAMS, **changes}
    foreseen = module.Manager(params, check=True).run()
    assert foreseen["request"] == ""
    if check:
        return foreseen
    result = module.Manager(params, check=False).run()
    assert foreseen["changed"] == result["changed"] == result["due"], (foreseen, result)
    assert "PRIVATE" not in str(result)
    return result


def test_a_fresh_gateway_makes_its_ca_and_a_second_run_changes_nothing(machine: Machine) -> None:
    assert run(check=True)["new_root"] and not (machine.root / "tls").exists()
    assert run()["new_root"]
    assert certificates.read(machine.root / "tls/served.pem").names == ("192.0.2.1", "gw1")
    clients = machine.root / "site-ca.pem"
    assert (
        clients.read_text() == (machine.root / "tls/root.pem").read_text() and clients.stat().st_mode & 0o777 == 0o644
    )
    assert places.CERTIFICATE_TIMER in machine.running and (machine.root / "sbin/command").stat().st_mode & 0o111
    assert "inference_gateway_certificate_end" in (machine.root / "textfiles/inference-gateway.prom").read_text()
    result = run()
    assert (result["changed"], result["new_root"]) == (False, False)


def test_another_name_needs_another_certificate_of_the_same_ca(machine: Machine) -> None:
    run()
    root = (machine.root / "site-ca.pem").read_text()
    machine.serves = certificates.fingerprint(machine.root / "tls/served.pem")
    assert run(names=["gw1", "llm.example.com"])["changed"]
    assert certificates.read(machine.root / "tls/served.pem").names == ("gw1", "llm.example.com")
    assert (machine.root / "site-ca.pem").read_text() == root
    # The running HAProxy serves the new certificate at once.
    assert machine.serves == certificates.fingerprint(machine.root / "tls/served.pem")
    assert "commit ssl cert tls.pem" in machine.asked


def test_the_first_gateway_signs_for_a_second_gateway(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run()
    second = {"lead": False, "name": "gw2", "names": ["gw2"]}
    other = at(monkeypatch, tmp_path / "second")
    (other.root / "textfiles").mkdir(parents=True)
    waits = run(**second)
    assert "CERTIFICATE REQUEST" in waits["request"] and not (other.root / "tls/served.pem").exists()
    at(monkeypatch, machine.root)
    signed = module.sign(
        {**PARAMS, "state": "signed", "request": waits["request"], "name": "gw2", "names": ["gw2"]}, check=False
    )
    assert signed["changed"] is False
    at(monkeypatch, other.root)
    assert run(**second, issued=signed["issued"])["request"] == ""
    assert certificates.read(other.root / "tls/served.pem").names == ("gw2",)
    assert not Authority(other.root / "tls").is_lead()
    assert (other.root / "site-ca.pem").read_text() == (machine.root / "site-ca.pem").read_text()


def test_a_lost_ca_is_not_replaced(machine: Machine) -> None:
    """The gateway still renews its certificate by its issuer. Other names, and other gateways, need the CA."""
    run()
    own = Authority(machine.root / "tls")
    own.root_key.unlink()
    assert run()["changed"] is False
    own.served.unlink()
    assert run()["new_root"] is False and own.served.exists()
    for act in (
        lambda: run(names=["gw1", "llm.example.com"]),
        lambda: module.sign({**PARAMS, "request": own.request()}, check=False),
    ):
        with pytest.raises(certificates.CertificateError, match=r"without -l\. Otherwise restore the file"):
            act()
    # The refusal comes before any change: an older command stays as well.
    places.CERTIFICATE_COMMAND.write_text("of an older version")
    with pytest.raises(certificates.CertificateError, match="Nothing was changed"):
        module.Manager({**PARAMS, "names": ["gw1", "llm.example.com"]}, check=False).run()
    assert places.CERTIFICATE_COMMAND.read_text() == "of an older version"


def test_a_gateway_that_is_not_the_lead_makes_no_ca(machine: Machine) -> None:
    """If the run leaves out the lead, another gateway gets the request to sign."""
    request = Authority(machine.root / "other").request()
    asked = {**PARAMS, "state": "signed", "request": request, "name": "gw2", "names": ["gw2"]}
    with pytest.raises(certificates.CertificateError, match=r"run baremetal\.inference\.site without -l"):
        module.sign({**asked, "lead": False}, check=False)
    assert not Authority(machine.root / "tls").is_lead()
    assert module.sign(asked, check=False)["changed"]
    assert module.sign({**asked, "lead": False}, check=False)["issued"]


def test_nothing_is_signed_in_check_mode(machine: Machine) -> None:
    asked = {**PARAMS, "state": "signed"}
    # A run would make the missing root.
    assert module.sign(asked, check=True) == {"changed": True, "issued": ""}
    with pytest.raises(certificates.CertificateError, match="Nothing was changed"):
        module.sign({**asked, "lead": False}, check=True)
    assert not (machine.root / "tls").exists()
    run()
    assert module.sign(asked, check=True) == {"changed": False, "issued": ""}


def test_without_tls_the_command_is_removed_and_the_keys_stay(machine: Machine) -> None:
    run()
    for changes in ({"form": "kept"}, {"state": "absent"}):
        result = run(**changes)
        gone = ("sbin/command", "site-ca.pem", "tls/settings.json", "textfiles/inference-gateway.prom")
        assert not any((machine.root / path).exists() for path in gone)
        assert result["changed"] and places.CERTIFICATE_TIMER not in machine.running
        assert Authority(machine.root / "tls").is_lead()
        assert run(**changes)["changed"] is False
        assert run()["new_root"] is False


def test_a_renewed_certificate_of_the_site_is_handed_over(machine: Machine, tmp_path: Path) -> None:
    run()
    own = {"form": "certificate", "certificate": str(tmp_path / "own.pem")}
    (tmp_path / "own.pem").write_text((machine.root / "tls/served.pem").read_text())
    run(**own)
    assert run(**own)["changed"] is False
    machine.serves = "0" * 40
    assert "the certificate in the running HAProxy" in run(**own)["diff"]["after"]
    assert not (machine.root / "site-ca.pem").exists()


def test_the_directory_of_keys_is_for_root_alone_with_a_certificate_of_the_site_or_of_the_sites_own_ca(
    machine: Machine, tmp_path: Path
) -> None:
    tls, path = machine.root / "tls", pair(tmp_path, "own")
    own = {"form": "certificate", "certificate": str(path), "certificate_key": str(path.with_suffix(".key"))}
    run(**own)
    assert tls.stat().st_mode & 0o777 == 0o700
    tls.chmod(0o755)
    assert run(**own)["changed"] and tls.stat().st_mode & 0o777 == 0o700
    assert run(**own)["changed"] is False
    assert run()["new_root"] and tls.stat().st_mode & 0o777 == 0o700


def test_a_certificate_is_obtained_once_by_acme(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[acme.Order] = []

    def fill(order: acme.Order) -> None:
        filled.append(order)

    monkeypatch.setattr(acme.Order, "is_filled", lambda _order: bool(filled))
    monkeypatch.setattr(acme.Order, "fill", fill)
    assert acme.TIMER not in run(form="acme", names=["gw.example.com"], check=True)["diff"]["after"]
    chain = pair(machine.root, "chain")
    monkeypatch.setattr(serving, "paths", lambda _form, *_own: (str(chain), ""))
    run(form="acme", names=["gw.example.com"])
    assert [order.names for order in filled] == [["gw.example.com"]] and acme.TIMER in machine.running
    assert (machine.root / "tls").stat().st_mode & 0o777 == 0o700
    assert run(form="acme", names=["gw.example.com"])["changed"] is False


def test_the_command_has_all_files_that_it_imports(machine: Machine) -> None:
    run()
    library = machine.root / "lib/inference_gateway"
    assert (library / "gateway/certificate_program.py").is_file() and (library / "core/commands.py").is_file()
    assert node_library.plan(module.certificate_program.__name__, library, machine.root / "sbin/command").files == []
