# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gateway_removal on a machine below a temporary root."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import HEADER
from ansible_collections.baremetal.inference.plugins.modules import gateway_removal as module

Call = Callable[..., dict[str, Any]]

TEMPLATE = Path(__file__).parents[4] / "roles/gateway/templates/etc/keepalived/keepalived.conf.j2"
WRITTEN = ["gateway.lua", "haproxy.cfg", "keys.map", "models.json"]


@pytest.fixture
def fake(services: Callable[[Iterable[str]], Any]) -> Any:
    """Both services as they are on a gateway with a floating address."""
    return services([module.HAPROXY, module.KEEPALIVED])


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
        monkeypatch.setattr(module, name, tmp_path / path)
    monkeypatch.setattr(module, "SERVER_STATES", (tmp_path / "states/state", tmp_path / "states/state.new"))
    for path in ("haproxy", "keepalived", "lib", "states", "ssl"):
        (tmp_path / path).mkdir()
    return tmp_path


def serves(root: Path) -> set[Path]:
    """Have it be a gateway; returns what is ours."""
    found = {root / "haproxy" / name for name in WRITTEN} | {module.DROP_IN, module.STATE, root / "states/state"}
    module.DROP_IN.parent.mkdir(parents=True)
    for path in found:
        path.write_text(f"{HEADER}\n")
    module.STATE.write_text(json.dumps({"schema": 1, "files": WRITTEN, "static": "x", "maps": "x"}))
    address = "{{ gateway_floating_address }}"
    module.FLOATING.write_text(TEMPLATE.read_text(encoding="utf-8").replace(address, "192.0.2.10/24"))
    for name in ("tls.pem", "tls.pem.key"):
        # What one of them leads to is gone.
        (root / "haproxy" / name).symlink_to(root / "ssl/chain.pem" if name == "tls.pem" else root / "ssl/gone.pem")
        found.add(root / "haproxy" / name)
    return found | {module.FLOATING}


def there(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def test_only_the_floating_address_is_given_up(run_module: Call, fake: Any, root: Path) -> None:
    ours = serves(root)
    done = run_module(module, floating_only=True)
    assert done["changed"] and there(root) == ours - {module.FLOATING}
    assert fake.calls[:2] == [f"{verb} {module.KEEPALIVED}" for verb in ("stop", "disable")]
    assert not any(module.HAPROXY in call for call in fake.calls)
    assert run_module(module, floating_only=True)["changed"] is False


def test_keepalived_goes_first_and_what_others_have_brought_stays(run_module: Call, fake: Any, root: Path) -> None:
    ours = serves(root)
    foreign = {root / name for name in ("ssl/chain.pem", "haproxy/own.http", "haproxy/haproxy.cfg.1~", "states/own")}
    for path in foreign:
        path.write_text("x")
    predicted = run_module(module, check=True)
    assert predicted["changed"] and fake.calls == [] and there(root) == ours | foreign
    done = run_module(module)
    assert done == predicted
    assert set(done["removed"]) == {str(path) for path in ours}
    assert done["diff"]["before"].splitlines() == done["removed"]
    assert (done["stopped"], done["floating_address"]) == ([module.KEEPALIVED, module.HAPROXY], "192.0.2.10/24")
    assert fake.calls == [
        *(f"{verb} {unit}" for unit in (module.KEEPALIVED, module.HAPROXY) for verb in ("stop", "disable")),
        "daemon-reload",
    ]
    assert there(root) == foreign
    directories = {path.name for path in root.rglob("*") if path.is_dir()}
    assert directories == {"haproxy", "units", "keepalived", "lib", "states", "ssl"}
    again = run_module(module)
    assert (again["changed"], again["stopped"], again["floating_address"]) == (False, [], "")


def test_a_machine_that_never_was_one_is_not_even_asked_of_its_services(
    run_module: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "systemctl", lambda *_arguments: pytest.fail("asked"))
    assert run_module(module)["changed"] is False


def test_a_gateway_without_a_floating_address_has_no_keepalived_to_stop(
    run_module: Call, fake: Any, root: Path
) -> None:
    serves(root)
    module.FLOATING.unlink()
    done = run_module(module)
    assert (done["stopped"], done["floating_address"], done["foreign"]) == ([module.HAPROXY], "", [])
    assert fake.active[module.KEEPALIVED] == "active"


@pytest.mark.parametrize("theirs", ["haproxy/haproxy.cfg", "keepalived/keepalived.conf"])
def test_what_somebody_else_has_taken_over_is_left_alone_and_the_other_goes(
    run_module: Call, fake: Any, root: Path, theirs: str
) -> None:
    ours = serves(root)
    (root / theirs).write_text("# mine\nvirtual_ipaddress {\n 198.51.100.1\n}\n")
    done = run_module(module)
    keeps_haproxy = theirs.startswith("haproxy")
    assert done["changed"] and done["foreign"] == [str(root / theirs)]
    assert done["stopped"] == [module.KEEPALIVED if keeps_haproxy else module.HAPROXY]
    assert done["floating_address"] == ("192.0.2.10/24" if keeps_haproxy else "")
    assert there(root) == (ours - {module.FLOATING} if keeps_haproxy else {module.FLOATING})
    assert run_module(module)["changed"] is False


def test_one_that_was_cut_off_is_gone_on_with(
    run_module: Call, fake: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serves(root)
    unlink = Path.unlink

    def cut_off(path: Path, missing_ok: bool = False) -> None:
        if path == root / "haproxy/keys.map":
            raise OSError("the power is gone")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", cut_off)
    assert "goes on from where it stopped" in run_module(module)["msg"]
    monkeypatch.setattr(Path, "unlink", unlink)
    done = run_module(module)
    assert done["changed"] and done["stopped"] == [] and there(root) == set()
