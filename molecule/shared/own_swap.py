# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for swaps that a node makes by itself: start, watch, and check for leftovers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from node import Node, wait_for

SWAP = "inferctl swap main --json --watch-seconds 3 --to"

RECORDS = "/var/lib/inference/swap/main.json /run/inference/swap/main.json"
"""Where the node records the step of a swap: on its disk, or in memory while the disk refuses."""


def release_of(node: Node, model: str) -> int:
    """The newest release of a model that a node keeps."""
    (instance,) = json.loads(node.run("inferctl releases main --json"))["instances"]
    return max(kept["release"] for kept in instance["releases"] if kept["model"] == model)


def swap(node: Node, model: str) -> dict[str, Any]:
    """Swap, and wait for the end. Returns the report."""
    return dict(json.loads(node.run(f"{SWAP} {release_of(node, model)}", check=False)))


def started(node: Node, model: str) -> subprocess.Popen[str]:
    """Start a swap, and do not wait for its end."""
    command = node.argv("sh", "-c", f"{SWAP} {release_of(node, model)}")
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True
    )


def step(node: Node) -> str:
    """The step of a swap that is under way; empty without a swap."""
    (status,) = json.loads(node.run("inferctl status main --json", check=False))["instances"]
    return status["swap"]["step"] if status["swap"] else ""


def _reached(node: Node, name: str, process: subprocess.Popen[str]) -> bool:
    """Whether a swap reaches a step within a few seconds, or has ended.

    On a busy machine, a step can be over before `inferctl status` answers. So a shell on the node reads the record.
    """
    seen = f'grep --quiet --no-messages \'"step": "{name}"\' {RECORDS}'
    said = node.run(f"for _ in $(seq 100); do {seen} && echo seen && break; sleep 0.02; done", check=False)
    return said == "seen" or process.poll() is not None


def at_each_step(node: Node, steps: Iterable[str], process: subprocess.Popen[str], act: Callable[[], object]) -> None:
    """Act when the swap reaches each of the steps. If a step is too short to be seen, its action and all later
    actions come when the swap has ended.

    Raises AssertionError if the swap has ended before the first action.
    """
    for number, name in enumerate(steps):
        wait_for(f"the swap reaches {name}", partial(_reached, node, name, process))
        if not number and process.poll() is not None:
            raise AssertionError(f"the swap ended before {name}: {process.communicate()[0]}")
        act()


def settled(node: Node) -> None:
    """Check that a swap has left no step, no drain and no closed gate, and that the doctor's check of swaps is ok."""
    assert step(node) == ""
    assert json.loads(node.run("inferctl drains --json"))["drains"] == []
    assert "elements" not in node.run("nft list set inet inference_gate closed", check=False)
    (found,) = json.loads(node.run("inferctl doctor engine-swaps --json", check=False))["checks"]
    assert found["status"] == "ok", found
