# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for the tests of the driver: nodes with a kernel in /boot and simulated GPUs."""

from __future__ import annotations

from typing import Any

from node import Node, changes, recorded_changes

# PCI device ids of GPUs, and the directory of a simulated machine on a node.
P100, B200, H100 = "0x15f8", "0x2901", "0x2330"
ROOT = "/root/machine"


LATER = (
    "Install | Enable the units",
    "Devices | Enable the unit",
)
"""Tasks that check mode cannot foresee: they enable units that an earlier task of the same run creates."""


def unforeseen() -> set[str]:
    """The tasks other than LATER that changed a fresh node, and that check mode had not predicted."""
    predicted, done = recorded_changes("check"), recorded_changes("converge")
    assert len(done) > 8, "the converge changed almost nothing: was the node not fresh?"
    return {task for _host, task in done - predicted if not task.endswith(LATER)}


def kernel(node: Node) -> str:
    """The version of the node's kernel in /boot."""
    return node.run("ls /boot/vmlinuz-* | head -n1").rpartition("vmlinuz-")[2]


def refused(node: Node, **extra: Any) -> str:
    """Run the playbook, which must fail before it changes anything. Returns the output as one line."""
    before = node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*")
    output = node.site(check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    assert node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*") == before
    return " ".join(output.replace("\\n", " ").split())


def plug(node: Node, device: str) -> dict[str, str]:
    """Simulate a machine with this GPU on its PCI bus. Returns the variables that make the role read this machine."""
    path = f"{ROOT}/sys/bus/pci/devices/0000:1b:00.0"
    words = f"vendor:0x10de device:{device} class:0x030200"
    node.run(f"rm -rf {ROOT}; mkdir -p {path}; for w in {words}; do echo ${{w#*:}} >{path}/${{w%%:*}}; done")
    return {"__nvidia_driver_root": ROOT, "nvidia_driver_install": "auto"}
