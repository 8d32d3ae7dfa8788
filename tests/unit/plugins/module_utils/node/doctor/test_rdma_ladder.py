# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder: each fault ends the ladder at its own step, which has an action."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import Difference
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import rdma_ladder
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    infiniband,
    port,
)

STEPS = ["rails", "links", "pcie", "settings", "packets", "gids", "bridges", "distance", "gpudirect"]


def healthy() -> dict[str, Any]:
    found = facts(*(device(number, port(number, mtu_active=4096)) for number in range(2)))
    for one in found["rdma_devices"]:
        one["pcie"]["acs_bridges"] = []
    return found


def climb(found: dict[str, Any], desired: Desired | None = None, drift: boot.Report | None = None) -> Any:
    return rdma_ladder.climb(found, desired, drift or boot.Report())


def test_a_node_without_a_fault_passes_all_steps_of_the_ladder() -> None:
    steps = climb(healthy())
    assert [step.name for step in steps] == STEPS and {step.status for step in steps} == {"ok"}
    text = rdma_ladder.as_text(steps)
    assert "This node is fine so far" in text and "ib_write_bw" in text and "exactly half" in text
    assert rdma_ladder.as_json(steps)["steps"][0]["name"] == "rails"


def faulty(step: str) -> tuple[dict[str, Any], Desired | None, boot.Report | None]:
    found, desired, drift = healthy(), None, None
    one: Any = found["rdma_devices"][0]
    inner: Any = one["ports"][0]
    if step == "rails":
        desired = Desired([Rail("0000:99:00.0/1", "ethernet")])
    elif step == "links":
        inner["rate_gbps"] = 200.0
    elif step == "pcie":
        one["pcie"]["width"] = 8
    elif step == "settings":
        drift = boot.Report([Difference(0, "rocep0s0/1", "pfc", [], [3], True)])
    elif step == "packets":
        inner["mtu_active"] = 1024
    elif step == "gids":
        inner.update(recommended_gid_index=None, recommended_gid_reason="no address")
    elif step == "bridges":
        one["pcie"]["acs_bridges"] = ["0000:10:01.0"]
    elif step == "distance":
        one["nearest_gpu_distance"] = "SYS"
    else:
        found["rdma_gpudirect"] = {"dma_buf": False, "dma_buf_reason": "proprietary modules", "peermem": False}
    return found, desired, drift


def test_a_setting_that_cannot_be_read_is_unknown_and_does_not_end_the_ladder() -> None:
    line = "rail 0 (mlx5_0/1): pfc: the driver of the network device has no DCB"
    steps = climb(healthy(), drift=boot.Report(unknown=[line]))
    (found,) = [step for step in steps if step.name == "settings"]
    assert found.status == "unknown" and line in found.message and found.action
    # The ladder continues, since the next steps can be judged.
    assert [step.name for step in steps] == STEPS
    text = rdma_ladder.as_text(steps)
    assert "fine so far" not in text and "No step found a fault; read what is unknown. Next" in text


@pytest.mark.parametrize("step", STEPS)
def test_each_fault_ends_the_ladder_at_its_step(step: str) -> None:
    steps = climb(*faulty(step))
    assert [one.name for one in steps] == STEPS[: STEPS.index(step) + 1]
    assert steps[-1].status in ("warn", "fail") and steps[-1].action
    text = rdma_ladder.as_text(steps)
    assert "Repair this first" in text and "ib_write_bw" not in text


def test_packets_of_the_cards_largest_size_are_ok() -> None:
    found = healthy()
    found["rdma_devices"][0]["ports"][0].update(mtu_active=2048, mtu_max=2048)
    packets = climb(found)[STEPS.index("packets")]
    assert (packets.status, packets.message) == ("ok", "packets have 2048 or 4096 bytes")
    found["rdma_devices"][0]["ports"][0].update(mtu_active=1024)
    assert climb(found)[-1].name == "packets" and "rdma_mtu" in climb(found)[-1].action


def test_the_action_for_small_packets_of_infiniband_is_not_rdma_mtu() -> None:
    last = climb(facts(infiniband(0, mtu_active=2048)))[-1]
    assert last.name == "packets" and "subnet manager" in last.action and "rdma_mtu" not in last.action


def test_a_missing_port_and_a_port_that_is_down_end_the_ladder() -> None:
    assert climb(facts())[-1].message == "this node has no RDMA port"
    found = healthy()
    found["rdma_devices"][1]["ports"][0]["state"] = "DOWN"
    (_rails, links) = climb(found)
    assert links.status == "fail" and links.message == "rocep1s0/1 is DOWN"


def test_infiniband_without_a_subnet_manager_ends_the_ladder() -> None:
    found = facts(infiniband(0, mtu_active=4096, sm_lid=0))
    assert climb(found)[-1].message == "ibp0s0/1: no subnet manager"
    # A port that never had a subnet manager is not active.
    last = climb(facts(infiniband(0, state="INIT", sm_lid=0)))[-1]
    assert (last.name, last.status) == ("links", "fail") and last.message.startswith("ibp0s0/1 is INIT: no subnet man")


def test_a_subnet_manager_that_has_ended_is_a_warning() -> None:
    found = facts(infiniband(0, mtu_active=4096, sm_lid=1), infiniband(1, state="DOWN"), *healthy()["rdma_devices"])
    asked = []

    def run(command: Sequence[str]) -> Outcome:
        asked.append(command)
        return Outcome(255, stdout="sminfo: iberror: failed: query")

    silent = rdma_ladder.silent_managers(found, run)
    assert silent == ["ibp0s0/1"] and len(asked) == 1
    del found["rdma_devices"][1]
    last = rdma_ladder.climb(found, None, boot.Report(), silent)[-1]
    assert (last.name, last.status) == ("gids", "warn") and "does not answer (ibp0s0/1: LID 1)" in last.message


def test_an_iommu_that_translates_ends_the_ladder() -> None:
    found = healthy()
    found["rdma_devices"][0]["pcie"]["iommu"] = "DMA-FQ"
    assert climb(found)[-1].message == "the IOMMU translates addresses (DMA-FQ)"
    found["rdma_devices"][0]["pcie"]["iommu"] = "identity"
    assert climb(found)[-1].name == "gpudirect"


def test_an_unknown_result_does_not_end_the_ladder() -> None:
    found = copy.deepcopy(healthy())
    for one in found["rdma_devices"]:
        one.update(pcie=None, nearest_gpu_distance=None)
        one["ports"][0]["mtu_active"] = None
    steps = rdma_ladder.climb(found, None, None)
    assert [step.name for step in steps] == STEPS
    assert [step.name for step in steps if step.status == "unknown"] == ["pcie", "settings", "packets", "distance"]


def test_a_step_is_unknown_if_one_port_is_unknown() -> None:
    found = healthy()
    found["rdma_devices"][1].update(pcie={"gen": 5, "gen_max": 5, "width": None}, nearest_gpu_distance=None)
    unknown = {step.name: step.message for step in climb(found) if step.status == "unknown"}
    assert unknown == {
        "pcie": "the PCIe link of rocep1s0/1 is unknown",
        "distance": "the distance between rocep1s0/1 and the GPUs is unknown",
    }
