# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a node again after a playbook has rebooted it: a container that shuts down does not start by itself."""

from __future__ import annotations

import subprocess
import threading

from node import Node


class Boots:
    """Starts a node that has shut down, as a machine's firmware does."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.count = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Boots:
        self._thread.start()
        return self

    def __exit__(self, *_what: object) -> None:
        self._ends.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ends.wait(1):
            if not self.runs():
                self.count += 1
                subprocess.run(["docker", "start", self.node.container], check=True, capture_output=True)

    def runs(self) -> bool:
        command = ["docker", "inspect", "--format", "{{.State.Running}}", self.node.container]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() == "true"
