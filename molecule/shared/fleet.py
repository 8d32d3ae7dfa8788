# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of one replica set behind a gateway, and their updates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import haproxy
import swap_costs
from load import Load, Report, Shape
from node import Node, playbook, start_playbook, wait_for

UPDATE = "baremetal.inference.update_model"
ROLLBACK = "baremetal.inference.rollback_model"

# Some requests are short: on two cores, long requests would take the time of an engine's load.
SHAPES = (Shape(True, 20), Shape(False, 20), Shape(True, 150))

ANSWERS = ("I am tiny-a", "I am tiny-b")
"""The beginning of each model's answers to requests for `main`. The text after this beginning may differ."""


def instances(model: str) -> list[dict[str, Any]]:
    """The instances of each node: one, with this model."""
    return [{"name": "main", "model": model, "port": 5005, "accelerator": "cpu"}]


@dataclass(frozen=True)
class Fleet:
    """Nodes that serve one replica set, their gateways, and the clients."""

    gateway: Node
    """The gateway that tests ask."""
    nodes: tuple[Node, ...]
    key: str
    clients: int = 3
    pause_seconds: float = 2.0
    """Seconds between an answer and the client's next request."""
    more_gateways: tuple[Node, ...] = ()
    """Other nodes that are gateways, too."""

    @property
    def limit(self) -> str:
        return ",".join(node.name for node in self.nodes)

    def only(self, *nodes: Node) -> Fleet:
        """The fleet of these nodes alone, behind the same gateways."""
        return replace(self, nodes=nodes)

    @property
    def gateways(self) -> tuple[Node, ...]:
        return self.gateway, *self.more_gateways

    def at_first_gateway(self) -> Fleet:
        """The same fleet, with clients at the first gateway only."""
        return replace(self, more_gateways=())

    def busy(self) -> Fleet:
        """The same fleet, with clients that hardly pause: they send enough requests also during a short action."""
        return replace(self, pause_seconds=min(self.pause_seconds, 0.5))

    def load(self, clients: int = 0, **others: str) -> Load:
        """Clients that use the name of the replica set, and other names. `others`: the right answer by other name."""
        answers = {"main": ANSWERS, **{name: (answer,) for name, answer in others.items()}}
        url, *more = (f"http://{gateway.address}:8000" for gateway in self.gateways)
        return Load(
            url,
            tuple(answers),
            clients or self.clients,
            self.key,
            SHAPES,
            answers=answers,
            pause_seconds=self.pause_seconds,
            others=more,
        )

    def update(self, *options: str, check: bool = True, name: str = UPDATE, **extra: Any) -> str:
        """Run an update of all nodes, and record what its swaps took. Returns its output."""
        said = playbook(self.limit, *options, check=check, name=name, **extra)
        swap_costs.record(said)
        return said

    def start_update(self, **extra: Any) -> Started:
        """Start an update, and do not wait for its end."""
        log = Path(tempfile.mkstemp(suffix=".log")[1])
        return Started(start_playbook(self.limit, UPDATE, log, **extra), log)

    def releases(self) -> dict[str, dict[str, Any]]:
        """The output of `inferctl releases` about the instance, by node."""
        said = {node.name: json.loads(node.run("inferctl releases --json")) for node in self.nodes}
        return {name: document["instances"][0] | {"lock": document["lock"]} for name, document in said.items()}

    def serving(self) -> dict[str, list[str]]:
        """Model and roles of the active release, by node. With the role `current`, the release has proved itself."""
        found = {}
        for name, instance in self.releases().items():
            (active,) = [kept for kept in instance["releases"] if "active" in kept["roles"]]
            found[name] = [active["model"], *active["roles"]]
        return found

    def models(self) -> list[str]:
        return [roles[0] for roles in self.serving().values()]

    def answers(self) -> list[str]:
        """The answer of each node's engine, which names its model."""
        return [node.ask() for node in self.nodes]

    def names(self) -> list[str]:
        """All names that the gateway lists."""
        _status, listed = self.gateway.request("/v1/models", port=8000, key=self.key)
        return sorted(model["id"] for model in listed["data"])

    def answer_to(self, name: str) -> str:
        """The gateway's answer to a request for a name; an empty text for an error."""
        return self.gateway.ask(name, port=8000, key=self.key)

    def drains(self) -> list[str]:
        return [node.run("inferctl drains --json | tr -d '\\n'") for node in self.nodes]

    def up(self) -> list[str]:
        """The nodes that the gateway sends requests to."""
        return haproxy.up(self.gateway, "set_main")

    def wait_up(self) -> None:
        """Wait until the gateway sends requests to all nodes."""
        names = sorted(node.name for node in self.nodes)
        wait_for("every engine is up at the gateway", lambda: self.up() == names, 120)


@dataclass(frozen=True)
class Started:
    """An update that runs."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Kill a playbook as a power cut does: no process cleans up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")


def unharmed(report: Report, at_least: int = 20) -> None:
    """No request failed, and at least `at_least` succeeded."""
    print(report)
    assert not report.failures, str(report)
    assert report.succeeded >= at_least
