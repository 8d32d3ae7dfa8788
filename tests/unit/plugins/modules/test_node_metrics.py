# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_metrics: what it installs and takes away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.modules import node_metrics

Call = Callable[..., dict[str, Any]]

RUNNING = {"ActiveState": "active", "UnitFileState": "enabled"}
ABSENT = {"ActiveState": "inactive", "UnitFileState": ""}


class Systemd:
    """A systemd that knows the timers."""

    def __init__(self) -> None:
        self.units = dict.fromkeys(METRICS_TIMERS, ABSENT)
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: self.units[name] for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] in ("enable", "disable"):
            self.units.update(dict.fromkeys(arguments[2:], RUNNING if arguments[0] == "enable" else ABSENT))
        return ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    return fake


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path)
    paths.command.parent.mkdir(parents=True)
    paths.command.write_text("")
    monkeypatch.setattr(node_metrics, "Paths", lambda: paths)
    return paths


def test_it_is_installed_once_and_taken_away(run_module: Call, fake: Systemd, paths: Paths) -> None:
    predicted = run_module(node_metrics, True)
    assert predicted["changed"] and fake.calls == [] and not paths.units.exists()
    done = run_module(node_metrics)
    assert done["files"] == predicted["files"] and len(done["files"]) == 3
    assert fake.calls == ["daemon-reload", f"enable --now {' '.join(METRICS_TIMERS)}"]
    assert not run_module(node_metrics)["changed"]
    # A timer whose text has changed begins anew, one that somebody stopped is started.
    paths.metrics_units[METRICS_TIMERS[0]].write_text("")
    fake.units[METRICS_TIMERS[1]] = ABSENT
    fake.calls.clear()
    assert run_module(node_metrics)["changed"]
    assert fake.calls == ["daemon-reload", f"enable --now {METRICS_TIMERS[1]}", f"restart {METRICS_TIMERS[0]}"]

    paths.textfiles.mkdir(parents=True)
    for name in ("inference-gpus.prom", "inference-probe.prom"):
        (paths.textfiles / name).write_text("")
    fake.calls.clear()
    gone = run_module(node_metrics, state="absent")
    assert gone["changed"] and fake.calls == [f"disable --now {' '.join(sorted(METRICS_TIMERS))}", "daemon-reload"]
    # What others wrote is not its own.
    assert [path.name for path in paths.textfiles.iterdir()] == ["inference-probe.prom"]
    assert not any(paths.units.iterdir())
    assert not run_module(node_metrics, state="absent")["changed"]


def test_without_the_tool_nothing_is_changed(run_module: Call, fake: Systemd, paths: Paths) -> None:
    paths.command.unlink()
    refused = run_module(node_metrics)
    assert refused["failed"] and "site.yml installs it" in refused["msg"] and fake.calls == []


def test_metrics_that_outlived_their_timers_go(run_module: Call, fake: Systemd, paths: Paths) -> None:
    paths.textfiles.mkdir(parents=True)
    left = paths.metrics("gpus")
    left.write_text("")
    gone = run_module(node_metrics, state="absent")
    # systemctl refuses `disable` without a unit.
    assert gone["files"] == [str(left)] and fake.calls == ["daemon-reload"] and not left.exists()
