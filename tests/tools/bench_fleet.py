# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the controller with a fleet of simulated nodes, which answer from a recording of a real node, at its speed.

For the recording, the unchanged playbooks run on one node without changes, with fleet_record.py in place of ssh. Then
Ansible starts fleet_answer.py in place of ssh. All work on the controller is as in a real run, also a process for each
task and node.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from nodes import ROOT, Site

TOOLS = ROOT / "tests/tools"
RUNS: Mapping[str, tuple[str, ...]] = {
    "no-change site": ("playbooks/site.yml",),
    "status": ("playbooks/status.yml",),
    # This run has all steps before the first swap. Only the recorded node serves.
    "update_model to the first batch": (
        "playbooks/update_model.yml",
        "--check",
        *("-e", '{"set": {"main": "tiny-b"}, "allow_downtime": true}'),
    ),
}
COUNTS = (10, 30, 100)
MOST = 1000
"""The largest number of simulated nodes."""
NAME = "simulated-{:03}"

Measure = Callable[[list[str], dict[str, str]], dict[str, Any]]
"""Runs a command with an environment. Returns seconds, cpu, peak_mib and output. Raises NodeError."""
Add = Callable[..., Any]
"""Adds a row to the table: its name, the measured values, and more columns."""


def counts(largest: int) -> list[int]:
    """The numbers of nodes to measure, up to `largest`. Raises ValueError."""
    if not 3 <= largest <= MOST:
        raise ValueError(f"FLEET: found {largest}, must be a number of nodes from 3 to {MOST}, such as 100")
    return [*(each for each in COUNTS if each < largest), largest] if largest > COUNTS[0] else [1, largest]


def address(number: int) -> str:
    """The address of a simulated node, from 1 on. No packet is sent there."""
    return f"198.18.{number // 250}.{number % 250 + 1}"


@dataclass
class Fleet:
    """An inventory of simulated nodes, and their recorded answers."""

    directory: Path
    site: Site
    real: str
    """The name of the recorded node."""

    @property
    def recordings(self) -> Path:
        return self.directory / "recordings"

    @property
    def inventory(self) -> Path:
        return self.directory / "inventory"

    def write_inventory(self, simulated: int, *, real: bool) -> None:
        """Write the hosts file. While recording, the real node is one of the hosts."""
        self.inventory.mkdir(parents=True, exist_ok=True)
        path = self.inventory / "hosts.yml"
        self.site.write_inventory(path)
        written = json.loads(path.read_text())
        hosts = written["inference"]["hosts"]
        written["inference"]["hosts"] = {self.real: hosts[self.real]} if real else {}
        for number in range(1, simulated + 1):
            where = {"ansible_host": address(number), "inference_address": address(number)}
            written["inference"]["hosts"][NAME.format(number)] = where
        path.write_text(json.dumps(written, indent=2) + "\n")
        group_vars = self.inventory / "group_vars"
        if not group_vars.exists():
            group_vars.symlink_to(ROOT / "inventories/demo/group_vars")

    def command(self, run: str) -> list[str]:
        """The command of a run in RUNS."""
        return ["ansible-playbook", "-i", str(self.inventory), *RUNS[run]]

    def environment(self, run: str, state: Path | None = None) -> dict[str, str]:
        """The environment with which Ansible records the node, or reads the recording. `state` counts the answers."""
        recording = self.recordings / run.replace(" ", "-")
        recording.mkdir(parents=True, exist_ok=True)
        return {
            "ANSIBLE_SSH_EXECUTABLE": str(TOOLS / ("fleet_answer.py" if state else "fleet_record.py")),
            # Files go over ssh, too: sftp and scp are other commands.
            "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
            "ANSIBLE_CALLBACK_PLUGINS": str(TOOLS / "fleet_callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "fleet_task",
            "FLEET_RECORDING": str(recording),
            **({"FLEET_STATE": str(state)} if state else {"FLEET_NODE": self.real}),
        }

    def record(self, measure: Measure, others: int) -> None:
        """Converge the node as one of several nodes, then record it in each of the runs."""
        shutil.rmtree(self.recordings, ignore_errors=True)
        self.write_inventory(others, real=True)
        measure([*self.command("no-change site"), "-l", self.real], {})
        nodes = "".join(f"{address(number)} {NAME.format(number)}\n" for number in range(1, MOST + 1))
        for run in RUNS:
            environment = self.environment(run)
            measure([*self.command(run), "-l", self.real], environment)
            (Path(environment["FLEET_RECORDING"]) / "nodes").write_text(nodes)

    def replay(self, measure: Measure, run: str, simulated: int) -> dict[str, Any]:
        """Measure a run over simulated nodes."""
        self.write_inventory(simulated, real=False)
        state = self.directory / "state"
        shutil.rmtree(state, ignore_errors=True)
        return measure(self.command(run), self.environment(run, state))


def further(sizes: Sequence[int], cpu: Sequence[float]) -> list[float]:
    """CPU-seconds of each further node, from one size of the fleet to the next."""
    pairs = list(zip(sizes, cpu, strict=True))
    return [(more - less) / (large - small) for (small, less), (large, more) in pairwise(pairs)]


def bench(fleet: Fleet, largest: int, measure: Measure, add: Add) -> None:
    """Record, replay, and add a row for each run and size.

    The ratio of a row is the cost of a further node there, divided by the cost of a further node between the first two
    sizes: above 1 is worse than linear."""
    sizes = counts(largest)
    fleet.record(measure, sizes[0] - 1)
    for run in RUNS:
        used: list[float] = []
        for size in sizes:
            result = fleet.replay(measure, run, size)
            used.append(result["cpu"])
            steps = further(sizes[: len(used)], used)
            more = {"further": round(steps[-1], 2)} if steps else {}
            if len(steps) > 1 and steps[0] > 0:
                more["ratio"] = round(steps[-1] / steps[0], 2)
            add(f"{run}, {size} simulated nodes", result, **more)
