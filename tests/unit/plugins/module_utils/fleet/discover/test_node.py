# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proposal for one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.finding import Proposal
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.node import propose, split
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load

Make = Callable[..., Machine]

KNOWN = load()


def findings(found: Machine) -> str:
    return "\n".join(propose("gpu-01", found, [], KNOWN).findings)


def test_proxmox_is_named_with_kernel_and_repositories(machine: Make) -> None:
    found = machine("l40s", proxmox="8.4", repositories=["https://enterprise.proxmox.com/debian/pve"])
    assert "runs Proxmox VE 8.4 with the kernel 6.1.0-50-amd64, from https://enterprise.proxmox.com/debian/pve" in (
        findings(found)
    )
    assert "names" in [one.variable for one in propose("gpu-01", found, [], KNOWN).own.questions]


def test_a_firewall_that_this_collection_did_not_set_up_is_a_question(machine: Make) -> None:
    for firewall, variable in (
        ({"others": ["ufw"]}, "common_firewall_enabled"),
        ({"others": [], "foreign_rules": True}, "common_firewall_replace"),
    ):
        found = propose("gpu-01", machine("l40s", firewall=firewall), [], KNOWN)
        assert variable in [one.variable for one in found.own.questions]


def test_a_service_on_a_machine_without_gpus_is_a_question(machine: Make) -> None:
    """Such a machine becomes the gateway, and the service may use the gateway's port."""
    wrapper = {"kind": "litellm", "port": 8000, "pid": 5, "unit": "litellm.service", "container": "", "models": ["a"]}
    found = propose("gw-01", machine("none", services=[wrapper]), [], KNOWN)
    assert "litellm (litellm.service, port 8000) serves already: a" in found.own.findings
    assert [one.variable for one in found.own.questions] == ["services"]
    assert "common_disks" not in found.disks and not found.shared.variables


def test_clock_rdma_and_reboot_are_findings(machine: Make) -> None:
    text = findings(machine("hgx-h100", clock={"synchronized": False, "daemons": []}))
    assert "its clock is not synchronised, and no program sets it: the set-up" in text
    text = findings(machine("hgx-h100", clock={"synchronized": False, "daemons": ["chrony"]}))
    assert "its clock is not synchronised, although chrony runs: see chronyc sources" in text
    assert "has 8 RDMA ports (InfiniBand), 8 of them up" in text and "needs one reboot for iommu=pt" in text
    rails = [{"ports": [{"link_layer": "Ethernet", "state": state}]} for state in ("ACTIVE_DEFER", "DOWN", None)]
    assert "has 3 RDMA ports (Ethernet), 1 of them up" in findings(replace(machine("hgx-h100"), rdma=rails))
    assert "has 1 RDMA port (Ethernet), 1 of them up" in findings(replace(machine("hgx-h100"), rdma=rails[:1]))
    assert "reboot" not in findings(machine("hgx-h100", cmdline="quiet iommu=pt"))


def test_a_virtual_machine_keeps_its_kernel(machine: Make) -> None:
    found = propose("gpu-01", machine("l40s", virtualization="kvm"), [], KNOWN)
    assert "common_kernel_cmdline" not in [one.name for one in found.shared.variables]


def test_an_address_that_machines_share_is_a_question(machine: Make) -> None:
    found = propose("gpu-01", machine("l40s"), ["10.0.0.11"], KNOWN)
    assert next(one.variable for one in found.own.questions) == "inference_address"


def test_the_reason_for_the_address_names_its_use(machine: Make) -> None:
    for kind, use in (("l40s", "Where engines listen for the gateways"), ("none", "Where other hosts reach this one")):
        (address,) = [
            one for one in propose("a", machine(kind), [], KNOWN).own.variables if one.name == "inference_address"
        ]
        assert address.reason.startswith(f"{use}: ")


def test_common_variables_are_those_of_all_machines_with_one_value() -> None:
    one, two = Proposal(), Proposal()
    one.add("same", 1, "")
    one.add("differs", 1, "")
    one.add("alone", 1, "")
    two.add("same", 1, "")
    two.add("differs", 2, "")
    shared, own = split({"a": one, "b": two})
    assert [each.name for each in shared.variables] == ["same"]
    assert [[each.name for each in proposal.variables] for proposal in own.values()] == [
        ["differs", "alone"],
        ["differs"],
    ]
