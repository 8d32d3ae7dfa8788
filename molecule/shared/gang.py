# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang of two nodes, as the tests see it: its engines, its states, and times of faults in seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from node import READY_SECONDS, Node, wait_for

NAME = "big"

TIMES: list[str] = []
"""A line for each fault."""


KNOWN = 6.0
"""Seconds until an engine is gone, as seen through docker and a busy machine. The channel knows within 2 s."""


def gone(node: Node, pid: int) -> bool:
    """Whether a node has no process with this number any more."""
    return not node.run(f"ps -p {pid} -o pid=", check=False)


def all_gone(pids: dict[Node, int]) -> bool:
    return all(gone(node, pid) for node, pid in pids.items())


class Gang:
    """The instance over both nodes."""

    def __init__(self, leader: Node, follower: Node) -> None:
        self.leader = leader
        self.follower = follower
        self.nodes = (leader, follower)

    def status(self, node: Node) -> dict[str, Any]:
        """`inferctl status` of the instance on a node."""
        (found,) = json.loads(node.run(f"inferctl status {NAME} --json", check=False))["instances"]
        return dict(found)

    def serves(self) -> bool:
        """Whether both nodes say so, and the leader answers."""
        return all(self.status(node)["serving"] for node in self.nodes) and bool(self.answer())

    def answer(self) -> str:
        return self.leader.ask(NAME)

    def wait_serving(self, seconds: float = READY_SECONDS) -> None:
        wait_for("the gang serves", self.serves, seconds)

    def forget(self) -> None:
        """Forget earlier faults: an hour has room for three of them, and for five starts."""
        self.leader.run(f"inferctl recover {NAME} --reset")
        for node in self.nodes:
            node.run(f"systemctl reset-failed vllm@{NAME}")

    def log(self, node: Node) -> str:
        """What the supervisor of a node has said."""
        return node.run(f"journalctl --no-pager --output=cat --unit=vllm@{NAME}")

    def engine_runs(self, node: Node) -> bool:
        """Whether the node has a process of the engine."""
        return bool(node.run(f"docker ps --quiet --filter name=^vllm-{NAME}$", check=False))

    def epoch(self) -> int:
        return int(self.status(self.leader)["gang"]["epoch"])

    def kill_engine(self, node: Node) -> None:
        node.run(f"kill -9 {node.engine_pid(NAME)}")

    @contextmanager
    def fault(self, name: str, known: float, ended: Callable[[], bool]) -> Iterator[None]:
        """A fault: `ended` must hold within `known` seconds. Then the gang serves again, in another epoch."""
        before = self.epoch()
        began = time.monotonic()
        yield
        wait_for(f"{name}: known", ended, known)
        seen = time.monotonic() - began
        wait_for(f"{name}: a new epoch serves", lambda: self.epoch() > before and self.serves())
        TIMES.append(f"{name}: known after {seen:.1f} s, serves again after {time.monotonic() - began:.0f} s")
