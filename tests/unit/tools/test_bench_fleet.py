# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of `make bench` for a simulated fleet, and the fleet's inventory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import bench_fleet
import fleet_answer
import pytest
from nodes import Site


class FakeSite:
    """One node, which no test starts."""

    def __init__(self) -> None:
        self.addresses = {"real": "192.0.2.1"}

    def write_inventory(self, path: Path) -> None:
        """Write the hosts as Site does."""
        path.write_text(json.dumps({"inference": {"hosts": {"real": {"ansible_host": "192.0.2.1"}}}, "all": {}}))


@pytest.fixture
def fleet(tmp_path: Path) -> bench_fleet.Fleet:
    return bench_fleet.Fleet(tmp_path, cast("Site", FakeSite()), "real")


def hosts(fleet: bench_fleet.Fleet) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((fleet.inventory / "hosts.yml").read_text())["inference"]["hosts"]
    return written


def test_the_fleet_is_measured_in_growing_sizes() -> None:
    assert bench_fleet.counts(100) == [10, 30, 100]
    assert bench_fleet.counts(50) == [10, 30, 50]
    assert bench_fleet.counts(400) == [10, 30, 100, 400]
    assert bench_fleet.counts(4) == [1, 4]
    with pytest.raises(ValueError, match="FLEET: found 2, must be a number of nodes from 3 to 1000"):
        bench_fleet.counts(2)


def test_a_simulated_node_has_an_address_of_its_own() -> None:
    assert len({bench_fleet.address(number) for number in range(1, 1001)}) == 1000


def test_the_run_that_is_recorded_has_all_simulated_nodes_in_its_inventory(fleet: bench_fleet.Fleet) -> None:
    fleet.write_inventory(2, real=True)
    assert list(hosts(fleet)) == ["real", "simulated-001", "simulated-002"]
    fleet.write_inventory(3, real=False)
    assert list(hosts(fleet)) == ["simulated-001", "simulated-002", "simulated-003"]
    assert hosts(fleet)["simulated-003"]["ansible_host"] == bench_fleet.address(3)


def test_the_cost_of_a_further_node_comes_from_two_sizes_of_the_fleet() -> None:
    assert bench_fleet.further([10, 30, 100], [20.0, 40.0, 180.0]) == [1.0, 2.0]
    assert bench_fleet.further([10], [20.0]) == []


def test_each_run_is_recorded_once_and_replayed_in_each_size(fleet: bench_fleet.Fleet) -> None:
    asked: list[tuple[list[str], dict[str, str]]] = []
    rows: list[tuple[str, dict[str, Any]]] = []

    def measure(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
        asked.append((command, environment))
        # Quadratic: 100 nodes cost more than ten times what 10 cost.
        return {"cpu": len(hosts(fleet)) ** 2 / 10, "seconds": 1.0}

    def add(what: str, result: dict[str, Any], **more: Any) -> None:
        rows.append((what, {**result, **more}))

    bench_fleet.bench(fleet, 100, measure, add)
    real = [environment for command, environment in asked if "real" in command]
    # The first run makes all changes, so that the recorded runs change nothing.
    assert [bool(environment) for environment in real] == [False, True, True, True]
    assert not any(environment.get("FLEET_STATE") for environment in real)
    simulated = [environment for command, environment in asked if "real" not in command]
    assert len(simulated) == 9 and all(environment["FLEET_STATE"] for environment in simulated)
    assert {environment["FLEET_RECORDING"] for environment in simulated} == {
        environment["FLEET_RECORDING"] for environment in real[1:]
    }
    assert [what for what, _row in rows][:3] == [f"no-change site, {size} simulated nodes" for size in (10, 30, 100)]
    assert [row.get("further") for _what, row in rows][:3] == [None, 4.0, 13.0]
    assert [row.get("ratio") for _what, row in rows][:3] == [None, None, 3.25]


def test_every_recording_lists_all_simulated_nodes(fleet: bench_fleet.Fleet) -> None:
    fleet.record(lambda _command, _environment: {}, 9)
    listed = list(fleet.recordings.glob("*/nodes"))
    assert len(listed) == len(bench_fleet.RUNS)
    for nodes in listed:
        assert fleet_answer.name_of(str(nodes.parent), bench_fleet.address(400)) == "simulated-400"
