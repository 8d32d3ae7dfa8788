# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gateway on a machine below a temporary root, with fakes of systemd, dpkg, HAProxy and keepalived."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins, service_files, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import keepalived, removal
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.floating import render
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import HEADER
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.places import KEEPALIVED
from ansible_collections.baremetal.inference.plugins.modules import gateway as module

Call = Callable[..., dict[str, Any]]

PLAN: dict[str, Any] = {
    "problems": [],
    "warnings": [],
    "config": f"{HEADER}\nglobal\n",
    "maps": {"keys.map": "abc alice\n"},
    "files": {"models.json": "{}"},
    "floating": "",
}
PARAMS: dict[str, Any] = {
    "parts": ["haproxy", "floating"],
    "packages": ["haproxy", "socat"],
    "held": ["haproxy"],
    "certificate_form": "certificate",
    "certificate": "",
    "certificate_key": "",
    "check_names": None,
    "acme_email": "",
    "acme_server": "",
    "memory_max": "50%",
    "settings": {"port": 8000},
    "replace": False,
}


class Machine:
    """systemd, dpkg, HAProxy and keepalived."""

    def __init__(self) -> None:
        self.installed = True
        self.active = False
        self.enabled = False
        self.pid = 100
        self.config_is_good = True
        self.comes_up = True
        self.takes_maps = True
        self.wants = "hold"
        self.conffiles = ""
        self.up: set[str] = set()
        self.calls: list[str] = []
        self.judged: set[str] = set()
        self.committed: list[str] = []

    def run_command(self, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        if argv[:3] == ["dpkg-query", "--show", "--showformat=${Conffiles}"]:
            return 0, self.conffiles, ""
        if argv[0] == "dpkg-query":
            # The output has the version only if the format asks for it.
            rows = [f"{self.wants} installed {name} 2.6" for name in argv[3:] if self.installed]
            return int(not rows), "".join(f"{row}\n" if "Version" in argv[2] else f"{row[:-4]}\n" for row in rows), ""
        if argv[0] == "journalctl":
            return 0, '{"status":200}\n[ALERT] cannot bind\n', ""
        if argv[0] == "keepalived":
            return int("good" not in Path(argv[-1].partition("=")[2]).read_text()), "line 3: unknown", ""
        if argv[0] == "haproxy":
            stage = Path(argv[-1]).parent
            self.judged = {path.name for path in stage.iterdir()}
            return (0, "", "") if self.config_is_good else (1, "", f"[ALERT] {stage}/haproxy.cfg:2: unknown keyword")
        words = " ".join(argv[1:])
        if words.startswith("is-"):
            haproxy = self.active if words.startswith("is-active") else self.enabled
            return int(not (KEEPALIVED in self.up if argv[-1] == KEEPALIVED else haproxy)), "", ""
        if argv[-1] == KEEPALIVED:
            self.calls.append(words)
            self.up |= {KEEPALIVED} if argv[1] in ("start", "enable") else set()
            return 0, "", ""
        self.calls.append(words.removesuffix(" haproxy.service"))
        if words.startswith(("start", "reload")) and self.comes_up:
            self.active, self.pid = True, self.pid + 1
        if words.startswith("enable"):
            self.enabled = True
        return 0, "", ""

    def ask(self, command: str) -> str:
        if not self.active:
            raise ConnectionRefusedError
        if command == "show info":
            return f"Pid: {self.pid}"
        if command.startswith("prepare"):
            return "New version created: 1" if self.takes_maps else "Unknown map"
        self.calls.append(command.split(" ")[0])
        if command.startswith("commit"):
            self.committed.append(command.split(" ")[-1])
        return ""


class Module:
    """What the module gateway needs of an AnsibleModule."""

    def __init__(self, machine: Machine, params: dict[str, Any], check_mode: bool) -> None:
        self.machine, self.params, self.check_mode = machine, params, check_mode
        self.run_command = machine.run_command
        self.warnings: list[str] = []

    def get_bin_path(self, name: str, opt_dirs: list[str]) -> str | None:
        return name if self.machine.installed else None

    def backup_local(self, path: str) -> str:
        return f"{path}.backup"

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()
    monkeypatch.setattr(module, "DIRECTORY", tmp_path / "haproxy")
    monkeypatch.setattr(module, "DROP_IN", tmp_path / "units/inference.conf")
    monkeypatch.setattr(service_files, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(module, "STATE", tmp_path / "gateway.json")
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.3)
    monkeypatch.setattr(module.runtime, "ask", lambda _path: found.ask)
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path / "apt")
    monkeypatch.setattr(apt_pins, "PREFERENCES", tmp_path / "apt/preferences.d")
    (tmp_path / "apt/apt.conf.d").mkdir(parents=True)
    (tmp_path / "apt/apt.conf.d/52-gateway").write_text(apt_pins.blacklist(["haproxy"]))
    monkeypatch.setattr(keepalived, "FLOATING", tmp_path / "keepalived/keepalived.conf")
    monkeypatch.setattr(removal, "FLOATING", tmp_path / "keepalived/keepalived.conf")
    monkeypatch.setattr(tested, "OS_RELEASE", tmp_path / "os-release")
    tested.OS_RELEASE.write_text('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n')
    return found


def given(**changes: Any) -> dict[str, Any]:
    """The module's options. Changes of what the filter gateway_plan makes go into the option `plan`."""
    plan = {name: changes.pop(name) for name in PLAN if name in changes}
    return {**PARAMS, **changes, "plan": {**PLAN, **plan}}


def run(machine: Machine, *, check_mode: Any = False, **changes: Any) -> dict[str, Any]:
    """One run of the module, after a run in check mode that must predict whether it changes anything."""
    params = given(**changes)
    results = []
    for mode in dict.fromkeys((True, check_mode)):
        if not mode:
            machine.calls.clear()
        ansible: Any = Module(machine, params, mode)
        results.append(module.present(ansible))
    assert results[0]["changed"] == results[-1]["changed"] == results[0]["due"]
    return results[-1]


def test_a_fresh_machine_starts_and_a_second_run_changes_nothing(machine: Machine) -> None:
    result = run(machine)
    assert (result["action"], machine.calls) == ("start", ["daemon-reload", "reset-failed", "start", "enable"])
    assert machine.judged == {"haproxy.cfg", "keys.map", "models.json"}
    assert (module.DIRECTORY / "keys.map").stat().st_mode & 0o777 == 0o600
    assert run(machine)["changed"] is False


def test_settings_are_recorded_also_if_no_file_differs(machine: Machine) -> None:
    run(machine)
    assert run(machine, settings={"port": 8001})["changed"] is False
    assert json.loads(module.STATE.read_text())["settings"] == {"port": 8001}


def test_without_haproxy_check_mode_predicts_and_a_run_is_an_error(machine: Machine) -> None:
    machine.installed = False
    result = run(machine, check_mode=True)
    assert (result["changed"], result["validated"]) == (True, False)
    with pytest.raises(ServiceError, match="not installed"):
        run(machine)


def test_maps_change_in_the_running_process(machine: Machine) -> None:
    run(machine)
    result = run(machine, maps={"keys.map": "def bob\n"})
    assert (result["action"], machine.calls) == ("maps", ["add", "commit"])
    assert (module.DIRECTORY / "keys.map").read_text() == "def bob\n"
    assert not any("bob" in str(part) for part in result["diff"])
    assert run(machine, maps={"keys.map": "def bob\n"})["changed"] is False


def test_rights_and_limits_of_a_new_key_are_loaded_before_the_key(machine: Machine) -> None:
    maps = {"keys.map": "abc alice\n", "rights.map": "alice|set_main 1\n", "concurrency.map": "alice 4\n"}
    run(machine, maps=maps)
    run(machine, maps={name: text.replace("alice", "bob") for name, text in maps.items()})
    assert machine.committed == ["concurrency.map", "rights.map", "keys.map"]


def test_haproxy_is_reloaded_if_it_refuses_the_new_maps(machine: Machine) -> None:
    run(machine)
    machine.takes_maps = False
    assert run(machine, maps={"keys.map": "def bob\n"})["action"] == "reload"
    assert machine.calls == ["reset-failed", "reload"]


@pytest.mark.parametrize("changes", [{"config": f"{HEADER}\nglobal\n  maxconn 1\n"}, {"files": {"models.json": "[]"}}])
def test_haproxy_is_reloaded_for_a_new_configuration_or_file(machine: Machine, changes: dict[str, Any]) -> None:
    run(machine)
    assert run(machine, **changes)["action"] == "reload"
    assert machine.calls == ["reset-failed", "reload"]


def test_a_run_that_was_cut_off_is_finished(machine: Machine) -> None:
    """The files are new, but HAProxy has not loaded them."""
    run(machine)
    changed = {"files": {"models.json": "[]"}}
    (module.DIRECTORY / "models.json").write_text("[]")
    assert run(machine, **changed)["action"] == "reload"
    assert run(machine, **changed)["changed"] is False


def test_a_configuration_that_haproxy_refuses_changes_nothing(machine: Machine) -> None:
    run(machine)
    machine.config_is_good = False
    with pytest.raises(ServiceError, match=r"haproxy/haproxy.cfg:2: unknown keyword"):
        run(machine, config=f"{HEADER}\nnonsense\n")
    assert (module.DIRECTORY / "haproxy.cfg").read_text() == PLAN["config"]


def test_a_process_that_does_not_come_up_leaves_the_old_files(machine: Machine) -> None:
    run(machine)
    machine.comes_up = False
    with pytest.raises(
        ServiceError, match=r"did not reload(.|\n)*cannot bind(.|\n)*back in place, and haproxy\S+ runs with"
    ):
        run(machine, config=f"{HEADER}\nglobal\n  maxconn 1\n", files={"models.json": "{}", "new.json": "{}"})
    assert (module.DIRECTORY / "haproxy.cfg").read_text() == PLAN["config"]
    assert not (module.DIRECTORY / "new.json").exists()
    assert machine.calls[-1] == "reload"
    machine.comes_up = True
    assert run(machine)["changed"] is False


# --- due


def due(machine: Machine, **changes: Any) -> Any:
    """Whether check mode finds work, as in the preflight."""
    ansible: Any = Module(machine, given(**changes), True)
    machine.calls.clear()
    found = module.present(ansible)
    assert machine.calls == []
    return found["due"]


def test_nothing_is_due_on_a_gateway_that_is_as_declared(machine: Machine) -> None:
    assert due(machine)
    run(machine)
    assert not due(machine)


@pytest.mark.parametrize(
    "broken",
    [
        lambda machine: setattr(machine, "active", False),
        lambda machine: setattr(machine, "enabled", False),
        lambda machine: setattr(machine, "wants", "install"),
        lambda machine: (module.DIRECTORY / "haproxy.cfg").write_text("global\n"),
        lambda machine: (module.DIRECTORY / "keys.map").unlink(),
        lambda machine: module.DROP_IN.unlink(),
        lambda machine: (apt_pins.ETC_APT / "apt.conf.d/52-gateway").unlink(),
    ],
    ids=["stopped", "disabled", "hold", "config", "map", "unit", "blacklist"],
)
def test_each_difference_is_due(machine: Machine, broken: Callable[[Machine], Any]) -> None:
    run(machine)
    broken(machine)
    assert due(machine, replace=True)


def test_a_package_that_is_missing_is_due_and_named(machine: Machine) -> None:
    run(machine)
    machine.installed = False
    ansible: Any = Module(machine, given(), True)
    found = module.present(ansible)
    assert found["due"] and found["missing"] == ["haproxy", "socat"]


def test_every_mistake_of_the_input_is_reported_and_nothing_is_changed(machine: Machine, tmp_path: Path) -> None:
    tested.OS_RELEASE.write_text('PRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\nVERSION_ID="11"\nID=debian\n')
    with pytest.raises(ServiceError) as caught:
        run(machine, problems=["role gateway: gateway_port: 0"])
    for words in ("Nothing was changed", "runs Debian GNU/Linux 11", "HAProxy of Debian 12 or 13", "gateway_port: 0"):
        assert words in str(caught.value)
    assert not module.DIRECTORY.exists()


# --- the floating address

FLOATS = f"{HEADER}\n# good\n"


def test_keepalived_starts_once_and_is_reloaded(machine: Machine) -> None:
    run(machine)
    assert due(machine, floating=FLOATS)
    assert run(machine, floating=FLOATS)["changed"]
    verbs = [call.split()[0] for call in machine.calls if KEEPALIVED in call]
    assert verbs == ["reset-failed", "start", "enable"] and removal.FLOATING.read_text() == FLOATS
    assert not due(machine, floating=FLOATS)
    run(machine, floating=f"{FLOATS}# other\n")
    assert [call for call in machine.calls if KEEPALIVED in call][-1] == f"reload {KEEPALIVED}"
    machine.up.clear()
    assert due(machine, floating=f"{FLOATS}# other\n")


def test_a_floating_address_that_is_no_longer_declared_is_due_and_removed(
    machine: Machine, services: Callable[[Iterable[str]], Any]
) -> None:
    run(machine, floating=FLOATS)
    fake = services([KEEPALIVED])
    assert due(machine) and removal.FLOATING.exists()
    assert run(machine)["changed"] and not removal.FLOATING.exists()
    assert fake.calls[:2] == [f"stop {KEEPALIVED}", f"disable {KEEPALIVED}"]


def test_only_the_named_part_is_changed(machine: Machine) -> None:
    assert "action" not in run(machine, floating=FLOATS, parts=["floating"])
    assert not module.DIRECTORY.exists() and removal.FLOATING.exists()
    removal.FLOATING.unlink()
    run(machine, floating=FLOATS, parts=["haproxy"])
    assert module.DIRECTORY.exists() and not removal.FLOATING.exists()


def test_keepalived_keeps_its_configuration_if_the_new_one_is_refused(machine: Machine) -> None:
    run(machine, floating=FLOATS)
    with pytest.raises(ServiceError, match=r"keepalived refuses(.|\n)*line 3: unknown"):
        run(machine, floating=f"{HEADER}\n# bad\n")
    assert removal.FLOATING.read_text() == FLOATS
    removal.FLOATING.write_text("# theirs")
    with pytest.raises(ServiceError, match="gateway_replace"):
        run(machine, floating=FLOATS)
    assert run(machine, floating=FLOATS, replace=True)["backup_file"] == f"{removal.FLOATING}.backup"


def test_a_foreign_configuration_is_kept(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    path = module.DIRECTORY / "haproxy.cfg"
    path.write_text("global\n")
    with pytest.raises(ServiceError, match="gateway_replace"):
        run(machine)
    machine.conffiles = f" {path} 27a8e6ee16d2f8c6c7c0dc3c2a7dcd0d\n"
    with pytest.raises(ServiceError, match="gateway_replace"):
        run(machine)
    assert run(machine, replace=True)["backup_file"]


def test_the_packages_own_configuration_is_replaced(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    path = module.DIRECTORY / "haproxy.cfg"
    path.write_text("global\n")
    digest = module.hashlib.md5(b"global\n", usedforsecurity=False).hexdigest()
    machine.conffiles = f" {path} {digest}\n"
    assert "backup_file" not in run(machine)


def test_a_certificate_is_linked_and_unlinked(machine: Machine, tmp_path: Path) -> None:
    for name in ("chain.pem", "key.pem"):
        (tmp_path / name).write_text("x")
    linked = {"certificate": str(tmp_path / "chain.pem"), "certificate_key": str(tmp_path / "key.pem")}
    run(machine)
    assert run(machine, **linked)["action"] == "reload"
    assert {"tls.pem", "tls.pem.key"} <= machine.judged
    assert (module.DIRECTORY / "tls.pem.key").resolve() == tmp_path / "key.pem"
    assert run(machine, **linked)["changed"] is False
    assert run(machine)["action"] == "reload"
    assert not (module.DIRECTORY / "tls.pem").is_symlink()
    with pytest.raises(ServiceError, match=r"none\.pem: there is no such file"):
        run(machine, certificate="/etc/none.pem")


def test_a_certificate_that_the_run_makes_may_be_missing_in_check_mode_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served = tmp_path / "served.pem"
    monkeypatch.setattr(module.serving, "paths", lambda form, *_own: (str(served), "") if form == "ca" else ("", ""))
    monkeypatch.setattr(module.serving, "coming", lambda: {str(served)})
    run(machine)
    result = run(machine, check_mode=True, certificate_form="ca")
    assert (result["validated"], result["action"]) == (False, "reload")
    with pytest.raises(ServiceError, match=r"served\.pem: there is no such file"):
        run(machine, certificate_form="ca")
    served.write_text("x")
    assert run(machine, certificate_form="ca")["validated"] is True
    # A gateway that serves plain HTTP has no link to a certificate.
    assert run(machine, certificate_form="kept")["action"] == "reload"
    assert not (module.DIRECTORY / "tls.pem").is_symlink()


def test_mistakes_of_inventory_and_certificate_are_named_together(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "chain.pem").write_text("x")
    wrong = {"certificate": str(tmp_path / "chain.pem"), "certificate_key": "/etc/none.key", "check_names": ["a"]}
    with pytest.raises(
        ServiceError, match=r"(?s)- the port\n- .*is no certificate in PEM: install [^\n]*\n- .*none\.key"
    ) as caught:
        run(machine, problems=["the port"], **wrong)
    assert "Nothing was changed" in str(caught.value)
    # A run that only changes engines does not check the certificate.
    assert module.certificate_problems(given(**{**wrong, "check_names": None})) == []


def test_acme_is_checked_before_the_first_certificate(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.acme.Order, "problems", lambda order: [f"{order.names} at {order.server}"])
    options = {"certificate_form": "acme", "check_names": ["gw.example.com"], "acme_server": "https://a.invalid"}
    with pytest.raises(ServiceError, match=r"\['gw.example.com'\] at https://a.invalid"):
        run(machine, **options)


def test_a_key_that_everybody_can_read_gets_a_warning(machine: Machine, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("x")
    options = given(certificate="/c.pem", certificate_key=str(key))
    assert module.key_warnings(options) == [
        f"{key}: every user of the gateway can read this private key: chmod 600 {key}"
    ]
    key.chmod(0o600)
    assert module.key_warnings(options) == [] == module.key_warnings(given())


def test_a_file_that_is_no_longer_wanted_is_removed(machine: Machine) -> None:
    run(machine, files={"models.json": "{}", "clients.acl": "192.0.2.1\n"})
    assert run(machine)["action"] == "reload"
    assert not (module.DIRECTORY / "clients.acl").exists()
    assert json.loads(module.STATE.read_text())["files"] == ["haproxy.cfg", "keys.map", "models.json"]


def test_a_map_that_other_users_can_read_gets_its_mode_back(machine: Machine) -> None:
    run(machine)
    (module.DIRECTORY / "keys.map").chmod(0o644)
    assert run(machine)["changed"] is True
    assert (module.DIRECTORY / "keys.map").stat().st_mode & 0o777 == 0o600


# --- state: absent

SHARED = {"address": "192.0.2.10/24", "interface": "eno1", "source": "", "peers": ["192.0.2.9"]}
WRITTEN = ["gateway.lua", "haproxy.cfg", "keys.map", "models.json"]


@pytest.fixture
def fake(services: Callable[[Iterable[str]], Any]) -> Any:
    """HAProxy and keepalived, as on a gateway with a floating address."""
    return services([module.HAPROXY, KEEPALIVED])


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that never was a gateway."""
    for name, path in (
        ("DIRECTORY", "haproxy"),
        ("UNITS", "units"),
        ("DROP_IN", "units/haproxy.service.d/inference.conf"),
        ("FLOATING", "keepalived/keepalived.conf"),
        ("STATE", "lib/gateway.json"),
    ):
        monkeypatch.setattr(removal, name, tmp_path / path)
    monkeypatch.setattr(removal, "SERVER_STATES", (tmp_path / "states/state", tmp_path / "states/state.new"))
    for path in ("haproxy", "keepalived", "lib", "states", "ssl"):
        (tmp_path / path).mkdir()
    return tmp_path


def serves(root: Path) -> set[Path]:
    """Write the files of a gateway with a floating address. Returns the paths that the module owns."""
    found = {root / "haproxy" / name for name in WRITTEN} | {removal.DROP_IN, removal.STATE, root / "states/state"}
    removal.DROP_IN.parent.mkdir(parents=True)
    for path in found:
        path.write_text(f"{HEADER}\n")
    removal.STATE.write_text(json.dumps({"schema": 1, "files": WRITTEN, "static": "x", "maps": "x"}))
    removal.FLOATING.write_text(render({**SHARED, "priority": 100, "router_id": 51}))
    for name in ("tls.pem", "tls.pem.key"):
        # The target of the key's link does not exist.
        (root / "haproxy" / name).symlink_to(root / "ssl/chain.pem" if name == "tls.pem" else root / "ssl/gone.pem")
        found.add(root / "haproxy" / name)
    return found | {removal.FLOATING}


def there(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def test_only_the_floating_address_is_removed(run_module: Call, fake: Any, root: Path) -> None:
    ours = serves(root)
    done = run_module(module, state="absent", parts=["floating"])
    assert done["changed"] and there(root) == ours - {removal.FLOATING}
    assert fake.calls[:2] == [f"{verb} {KEEPALIVED}" for verb in ("stop", "disable")]
    assert not any(module.HAPROXY in call for call in fake.calls)
    assert run_module(module, state="absent", parts=["floating"])["changed"] is False


def test_keepalived_is_removed_first_and_files_of_other_origin_stay(run_module: Call, fake: Any, root: Path) -> None:
    ours = serves(root)
    foreign = {root / name for name in ("ssl/chain.pem", "haproxy/own.http", "haproxy/haproxy.cfg.1~", "states/own")}
    for path in foreign:
        path.write_text("x")
    predicted = run_module(module, check=True, state="absent")
    assert predicted["changed"] and fake.calls == [] and there(root) == ours | foreign
    done = run_module(module, state="absent")
    assert done == predicted
    assert set(done["removed"]) == {str(path) for path in ours}
    assert done["diff"]["before"].splitlines() == done["removed"]
    assert (done["stopped"], done["floating_address"]) == ([KEEPALIVED, module.HAPROXY], "192.0.2.10/24")
    assert fake.calls == [
        *(f"{verb} {unit}" for unit in (KEEPALIVED, module.HAPROXY) for verb in ("stop", "disable")),
        "daemon-reload",
    ]
    assert there(root) == foreign
    directories = {path.name for path in root.rglob("*") if path.is_dir()}
    assert directories == {"haproxy", "units", "keepalived", "lib", "states", "ssl"}
    again = run_module(module, state="absent")
    assert (again["changed"], again["stopped"], again["floating_address"]) == (False, [], "")


def test_on_a_machine_that_never_was_a_gateway_no_service_is_changed(
    run_module: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "systemctl", lambda *_arguments: pytest.fail("asked"))
    assert run_module(module, state="absent")["changed"] is False


def test_a_gateway_without_a_floating_address_has_no_keepalived_to_stop(
    run_module: Call, fake: Any, root: Path
) -> None:
    serves(root)
    removal.FLOATING.unlink()
    done = run_module(module, state="absent")
    assert (done["stopped"], done["floating_address"], done["foreign"]) == ([module.HAPROXY], "", [])
    assert fake.active[KEEPALIVED] == "active"


@pytest.mark.parametrize("theirs", ["haproxy/haproxy.cfg", "keepalived/keepalived.conf"])
def test_a_service_with_a_foreign_configuration_stays_and_the_other_is_removed(
    run_module: Call, fake: Any, root: Path, theirs: str
) -> None:
    ours = serves(root)
    (root / theirs).write_text("# mine\nvirtual_ipaddress {\n 198.51.100.1\n}\n")
    done = run_module(module, state="absent")
    keeps_haproxy = theirs.startswith("haproxy")
    assert done["changed"] and done["foreign"] == [str(root / theirs)]
    assert done["stopped"] == [KEEPALIVED if keeps_haproxy else module.HAPROXY]
    assert done["floating_address"] == ("192.0.2.10/24" if keeps_haproxy else "")
    assert there(root) == (ours - {removal.FLOATING} if keeps_haproxy else {removal.FLOATING})
    assert run_module(module, state="absent")["changed"] is False


def test_a_removal_that_was_cut_off_is_continued(
    run_module: Call, fake: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serves(root)
    unlink = Path.unlink

    def cut_off(path: Path, missing_ok: bool = False) -> None:
        if path == root / "haproxy/keys.map":
            raise OSError("the power is gone")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", cut_off)
    assert "the removal continues" in run_module(module, state="absent")["msg"]
    monkeypatch.setattr(Path, "unlink", unlink)
    done = run_module(module, state="absent")
    assert done["changed"] and done["stopped"] == [] and there(root) == set()
