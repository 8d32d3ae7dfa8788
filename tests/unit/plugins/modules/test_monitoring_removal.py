# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module monitoring_removal on a machine below a temporary root."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import dcgm_unit
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import HEADER
from ansible_collections.baremetal.inference.plugins.modules import monitoring_removal as module

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def fake(services: Callable[[Iterable[str]], Any]) -> Any:
    """Prometheus and Alertmanager as they are while a host watches."""
    return services(module.SERVICES)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any of it."""
    for name, path in (("DIRECTORY", "etc"), ("UNITS", "units"), ("SAMPLES", "samples"), ("SILENCES", "silences")):
        monkeypatch.setattr(module, name, tmp_path / path)
        (tmp_path / path).mkdir()
    monkeypatch.setattr(module, "STATE", tmp_path / "lib/monitoring.json")
    (tmp_path / "lib").mkdir()
    return tmp_path


def watches(root: Path) -> set[Path]:
    """Have it be a monitoring host; returns what is ours."""
    names = ["alertmanager.yml", "prometheus.yml", "password", "rules/a.yml", "targets/node.json"]
    found = {root / "etc" / name for name in names}
    found |= {root / f"units/{unit}.d/inference.conf" for unit in module.SERVICES}
    for path in found:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{HEADER}\n")
    module.STATE.write_text(json.dumps({"schema": 1, "files": names, "loaded": {}}))
    return found | {module.STATE}


def there(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_what_is_ours_goes_and_what_it_knows_stays(run_module: Call, fake: Any, root: Path) -> None:
    (root / "samples/block").write_text("x")
    (root / "etc/consoles").mkdir()
    foreign = {root / "samples/block", root / "etc/web.example", root / "units/prometheus.service.d/own.conf"}
    ours = watches(root)
    for path in foreign:
        path.write_text("x")
    predicted = run_module(module, check=True)
    assert predicted["changed"] and fake.calls == [] and there(root) == ours | foreign
    done = run_module(module)
    assert done == predicted
    assert set(done["removed"]) == {str(path) for path in ours}
    assert (done["stopped"], done["kept"]) == (list(module.SERVICES), [str(root / "samples"), str(root / "silences")])
    assert fake.calls == [
        *(f"{verb} {unit}" for unit in module.SERVICES for verb in ("stop", "disable")),
        "daemon-reload",
    ]
    assert there(root) == foreign
    directories = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}
    assert directories == {"etc", "etc/consoles", "units", "units/prometheus.service.d", "samples", "silences", "lib"}
    assert run_module(module)["changed"] is False


def test_a_machine_that_never_watched_is_not_even_asked_of_its_services(
    run_module: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "systemctl", lambda *_arguments: pytest.fail("asked"))
    assert run_module(module)["changed"] is False


@pytest.mark.parametrize("name", ["prometheus.yml", "alertmanager.yml"])
def test_what_somebody_else_has_taken_over_is_left_alone(run_module: Call, fake: Any, root: Path, name: str) -> None:
    ours = watches(root)
    (root / "etc" / name).write_text("mine: true\n")
    done = run_module(module)
    assert done["changed"] is False and done["foreign"] == [str(root / "etc" / name)]
    assert there(root) == ours and fake.calls == []


def test_one_that_was_cut_off_is_gone_on_with(
    run_module: Call, fake: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches(root)
    unlink = Path.unlink

    def cut_off(path: Path, missing_ok: bool = False) -> None:
        if path == root / "etc/password":
            raise OSError("the power is gone")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", cut_off)
    assert "goes on from where it stopped" in run_module(module)["msg"]
    monkeypatch.setattr(Path, "unlink", unlink)
    done = run_module(module)
    assert done["changed"] and done["stopped"] == [] and there(root) == set()


def test_services_that_were_removed_with_their_packages_are_not_stopped(
    run_module: Call, fake: Any, root: Path
) -> None:
    watches(root)
    for known, value in ((fake.active, "inactive"), (fake.enabled, ""), (fake.loaded, "not-found")):
        known.update(dict.fromkeys(module.SERVICES, value))
    assert run_module(module)["stopped"] == [] and fake.calls == ["daemon-reload"]
    assert there(root) == set()


def test_dcgm_exporter_goes_alone(run_module: Call, services: Callable[[Iterable[str]], Any], root: Path) -> None:
    fake = services([module.DCGM_UNIT])
    unit, ours = root / "units" / module.DCGM_UNIT, watches(root)
    unit.write_text(dcgm_unit(f"dcgm@sha256:{'0' * 64}", "", 9400, "cdi"))
    done = run_module(module, what="dcgm_exporter")
    assert (done["stopped"], done["removed"], done["kept"]) == ([module.DCGM_UNIT], [str(unit)], [])
    assert fake.calls == [f"stop {module.DCGM_UNIT}", f"disable {module.DCGM_UNIT}", "daemon-reload"]
    assert there(root) == ours
    assert run_module(module, what="dcgm_exporter")["changed"] is False
