# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual machine of the scenario vm, as a node for the tests."""

from __future__ import annotations

import shlex
from typing import Any

import machines
from node import EPHEMERAL, PROJECT, Node, playbook


class Machine(Node):
    """A node that is a virtual machine; site() runs only the role `common`."""

    playbook = str(PROJECT / "molecule/vm/converge.yml")

    def __init__(self) -> None:
        super().__init__("machine")
        self._qemu = machines.Machine(EPHEMERAL / "machine")

    def argv(self, *command: str) -> list[str]:
        # A shell on the machine reads the command that ssh sends.
        return [*self._qemu.ssh_command(), shlex.join(command)]

    def reboot(self) -> None:
        """Reboot the machine, and wait until it has booted again."""
        self._qemu.reboot()

    def maintenance(self, **extra: Any) -> str:
        """Run the playbook that reboots the machine if a reboot is due. Returns the output of the playbook."""
        name = "baremetal.inference.maintenance"
        return playbook(self.name, "--tags", "reboot", name=name, **extra)
