# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of everything that a node has besides its instances."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    AGENT_UNIT,
    GATES_UNIT,
    METRICS_TIMERS,
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate, node_removal, removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    lock,
)

from .conftest import written

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def test_only_the_files_that_must_be_kept_stay(paths: Paths, calls: list[tuple[str, ...]]) -> None:
    kept = paths.state / "docker-daemon.json"
    authority = paths.state / "gateway-tls/authority"
    keep = [kept, authority]
    metrics = paths.textfiles / "inference-probe.prom"
    # systemd keeps this directory when the agent stops.
    answers = paths.gateway_answers("main").parent
    answers.mkdir(parents=True)
    for path in (
        kept,
        authority / "key.pem",
        paths.state / "gateway-tls/served.pem",
        paths.target,
        paths.state / "manifests.json",
        metrics,
        paths.textfiles / "smart.prom",
    ):
        files.write(path, "x")
    with pytest.raises(ValueError, match="the node still has main, other: remove each instance first"):
        node_removal.refuse_instances(paths)
    for name in ("main", "other"):
        removal.remove(paths, name, check=False)
    wanted = lock.Lock(
        "a", "mira", "admin1", "baremetal.inference.decommission", drains.format_time(NOW), lock.until(NOW, 300)
    )
    lock.take(paths, wanted, NOW)
    going = node_removal.remove_node_traces(paths, keep, check=True)
    assert going == [paths.target, paths.etc, paths.state, answers, metrics]
    assert node_removal.remove_node_traces(paths, keep, check=False) == going and not answers.exists()
    left = {
        *(str(path.relative_to(paths.root)) for path in (kept, authority / "key.pem")),
        "var/lib/prometheus/node-exporter/smart.prom",
    }
    assert written(paths.root) == left
    # The next run takes the lock again. The lock alone is no change, and is removed again.
    lock.take(paths, wanted, NOW)
    assert node_removal.remove_node_traces(paths, keep, check=False) == []
    assert written(paths.root) == left
    assert node_removal.remove_node_traces(paths, check=False) == [paths.state]
    assert not paths.state.exists()


@pytest.mark.parametrize(
    ("engines", "stopped"),
    [
        ("", ["vllm", r"inference\x2dmetrics", r"inference\x2drecovery", r"inference\x2dswap"]),
        (
            "vllm@theirs.service loaded active running\n",
            [r"inference\x2dmetrics", r"inference\x2drecovery", r"inference\x2dswap"],
        ),
    ],
)
def test_services_are_removed_with_their_slices_except_a_slice_in_use(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, engines: str, stopped: list[str]
) -> None:
    calls: list[str] = []

    def systemctl(*words: str) -> str:
        if words[0] == "list-units":
            return engines
        calls.append(" ".join(words))
        return ""

    def show(units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {"ActiveState": "active"} for unit in units}

    monkeypatch.setattr(systemd, "systemctl", systemctl)
    monkeypatch.setattr(systemd, "show", show)
    monkeypatch.setattr(gate, "remove", lambda: calls.append("no gates"))
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.recovery_units.values()]
    units += paths.swap_units.values()
    for path in units:
        files.write(path, "x")
    assert node_removal.remove_services(paths, check=True) == units
    assert calls == [] and paths.agent_unit.exists()
    assert node_removal.remove_services(paths, check=False) == units
    assert not any(path.exists() for path in units)
    assert {line for line in calls if "slice" in line} == {f"stop system-{name}.slice" for name in stopped}
    # The agent asks for recoveries, so it stops before the units that it would start.
    order = [line.removeprefix("stop ") for line in calls if line.startswith("stop inference")]
    assert order == [*METRICS_TIMERS, AGENT_UNIT, RECOVERY_PATH, RECOVERY_DISPATCH, GATES_UNIT]
    assert calls[-1] == "no gates"


def test_parent_directories_that_become_empty_are_removed(tmp_path: Path) -> None:
    (tmp_path / "keep/cache/vllm/main").mkdir(parents=True)
    (tmp_path / "keep/other").mkdir()
    wanted = [tmp_path / "keep/cache/vllm", tmp_path / "nowhere"]
    assert node_removal.remove_directories(wanted, check=True) == wanted[:1] and wanted[0].exists()
    assert node_removal.remove_directories(wanted, check=False) == wanted[:1]
    assert [path.name for path in (tmp_path / "keep").iterdir()] == ["other"]
    assert node_removal.remove_directories(wanted, check=False) == []
