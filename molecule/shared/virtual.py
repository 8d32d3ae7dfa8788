# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual machine as the tests see it."""

from __future__ import annotations

import shlex
from typing import Any

import machines
from node import EPHEMERAL, PROJECT, Node, playbook


class Machine(Node):
    """A node that is a virtual machine; site() runs the role `common` alone."""

    playbook = str(PROJECT / "molecule/vm/converge.yml")

    def __init__(self) -> None:
        super().__init__("machine")
        self._qemu = machines.Machine(EPHEMERAL / "machine")

    def argv(self, *command: str) -> list[str]:
        # What ssh is given, a shell reads.
        return [*self._qemu.ssh_command(), shlex.join(command)]

    def maintenance(self, **extra: Any) -> str:
        """Reboot it for what waits for that, as its operator would; returns what the playbook said."""
        name = "baremetal.inference.maintenance"
        return playbook(self.name, "--tags", "reboot", name=name, **extra)
