# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a machine with a kernel and, as far as it is asked, with GPUs: for the tests of the driver."""

from __future__ import annotations

from typing import Any

from node import Node, changes, recorded_changes

# What a simulated machine has on its PCI bus.
P100, B200, H100 = "0x15f8", "0x2901", "0x2330"
ROOT = "/root/machine"


LATER = (
    "Install | Enable the units",
    "Devices | Make them at every boot",
)
"""Tasks that check mode cannot foresee: before a run has changed something there is no unit to enable."""


def unforeseen() -> set[str]:
    """The tasks that changed a fresh node, and that check mode had not told of."""
    predicted, done = recorded_changes("check"), recorded_changes("converge")
    assert len(done) > 8, "the converge changed hardly anything: was the node not fresh?"
    return {task for _host, task in done - predicted if not task.endswith(LATER)}


def kernel(node: Node) -> str:
    """The release of the node's kernel in /boot."""
    return node.run("ls /boot/vmlinuz-* | head -n1").rpartition("vmlinuz-")[2]


def refused(node: Node, **extra: Any) -> str:
    """A run that must fail before it changed anything. Returns what it said, as one line."""
    before = node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*")
    output = node.site(check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    assert node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*") == before
    return " ".join(output.replace("\\n", " ").split())


def plug(node: Node, device: str) -> dict[str, str]:
    """A machine with this GPU, as far as the PCI bus tells; the variables that lead the role there."""
    path = f"{ROOT}/sys/bus/pci/devices/0000:1b:00.0"
    words = f"vendor:0x10de device:{device} class:0x030200"
    node.run(f"rm -rf {ROOT}; mkdir -p {path}; for w in {words}; do echo ${{w#*:}} >{path}/${{w%%:*}}; done")
    return {"__nvidia_driver_root": ROOT, "nvidia_driver_install": "auto"}
