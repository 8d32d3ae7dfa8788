# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, wishes of the inventory, and the plans for them."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import Plan, decide

KNOWN = load()
KERNELS = {"linux-image-amd64": "6.1.77-1", "linux-image-6.1.0-77-amd64": "6.1.77-1"}


def gpu(architecture: str | None, number: int = 0) -> dict[str, Any]:
    return {"pci_bus_id": f"0000:{number:02x}:00.0", "name": f"NVIDIA {architecture}", "architecture": architecture}


def node(*architectures: str | None, debian: int = 12, **more: Any) -> Node:
    packages = {**KERNELS, **more.pop("packages", {})}
    gpus = [gpu(architecture, number) for number, architecture in enumerate(architectures)]
    return Node(debian, gpus, packages=packages, kernels=("6.1.0-77-amd64",), **more)


def planned(wish: Wish, where: Node) -> Plan:
    decision = decide(wish, where, KNOWN)
    assert decision.plan is not None, decision.problems
    assert decision.problems == []
    return decision.plan


def refused(wish: Wish, where: Node) -> list[str]:
    decision = decide(wish, where, KNOWN)
    assert decision.plan is None
    return decision.problems


def installer(version: str, flavor: str = "auto", **more: Any) -> Wish:
    return Wish(
        "runfile", version, flavor, runfile="controller:/srv/driver.run", checksum=f"sha256:{'7a' * 32}", **more
    )
