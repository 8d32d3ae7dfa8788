# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults during a swap, in what the swap needs: Docker, the agent, the firewall, the disk, the whole node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest
from fleet import Fleet, unharmed
from node import Node, wait_for
from own_swap import at_each_step, settled, started

pytestmark = pytest.mark.full

STATE = "/var/lib/inference/swap"
REPORT = "/var/lib/inference/swapped/main.json"


def docker_dies(node: Node) -> None:
    """Kill Docker, which systemd starts again. After three deaths within a minute, systemd would not."""
    node.run("systemctl reset-failed docker; systemctl kill --signal KILL docker")


def docker_is_back(node: Node) -> None:
    node.run("systemctl reset-failed docker; systemctl start docker")
    wait_for("Docker answers", lambda: node.run("docker version --format ok || true") == "ok", 60)


def agent_dies(node: Node) -> None:
    node.run("systemctl kill --signal KILL inference-agent")


def firewall_reloads(node: Node) -> None:
    node.run("systemctl reload nftables")


@contextmanager
def full_disk(node: Node) -> Iterator[None]:
    """A disk without a free block for the state of swaps."""
    node.run(f"mkdir -p {STATE} && mount -t tmpfs -o size=64k,mode=0750 swap {STATE}")
    node.run(f"dd if=/dev/zero of={STATE}/full bs=4k", check=False)
    try:
        yield
    finally:
        node.run(f"umount {STATE}")


def other_model(fleet: Fleet) -> str:
    """The model that the second node does not serve now."""
    return "tiny-a" if fleet.models()[1] == "tiny-b" else "tiny-b"


def swapped(fleet: Fleet, steps: tuple[str, ...], breaks: Callable[[Node], Any]) -> dict[str, Any]:
    """Swap on the second node, which is no gateway, with faults at some steps. Returns the report."""
    node = fleet.nodes[1]
    process = started(node, other_model(fleet))
    at_each_step(node, steps, process, partial(breaks, node))
    # A reboot of the node ends the command; the swap continues.
    process.communicate(timeout=600)
    wait_for("the swap ends", lambda: _ended(node), 600)
    return dict(json.loads(node.run(f"cat {REPORT}")))


def _ended(node: Node) -> bool:
    said = node.run("inferctl status main --json 2>/dev/null || true", check=False)
    return bool(said) and json.loads(said)["instances"][0]["swap"] is None


@pytest.mark.parametrize(
    ("steps", "breaks", "around"),
    [
        pytest.param(("drain", "gate", "start", "watch"), docker_dies, nullcontext, id="docker"),
        pytest.param(("drain", "gate", "probe", "watch"), agent_dies, nullcontext, id="agent"),
        pytest.param(("gate", "start", "probe"), firewall_reloads, nullcontext, id="firewall"),
        # Without steps, `breaks` is never called: the disk alone is the fault, during the whole swap.
        pytest.param((), firewall_reloads, full_disk, id="disk"),
    ],
)
def test_a_swap_ends_although_a_part_of_the_node_breaks(
    fleet: Fleet,
    steps: tuple[str, ...],
    breaks: Callable[[Node], Any],
    around: Callable[[Node], AbstractContextManager[None]],
) -> None:
    fleet.wait_up()
    node, before, target = fleet.nodes[1], fleet.models()[1], other_model(fleet)
    reports: list[dict[str, Any]] = []

    def under_fire() -> None:
        with around(node):
            reports.append(swapped(fleet, steps, breaks))

    unharmed(fleet.busy().load().during(under_fire, seconds_after=3))
    docker_is_back(node)
    # If Docker's fault ends the new engine, the swap returns to the release before.
    outcomes = ("done", "returned") if breaks is docker_dies else ("done",)
    assert reports[0]["outcome"] in outcomes, reports
    served = target if reports[0]["outcome"] == "done" else before
    assert fleet.models()[1] == served and node.ask() == f"I am {served}."
    settled(node)


@pytest.mark.parametrize("step", ["drain", "start", "probe"])
def test_a_node_that_restarts_during_a_swap_ends_the_swap_after_its_boot(fleet: Fleet, step: str) -> None:
    """Only requests in flight at the power cut are lost."""
    fleet.wait_up()
    node, before, target = fleet.nodes[1], fleet.models()[1], other_model(fleet)
    reports: list[dict[str, Any]] = []
    load = fleet.load().during(lambda: reports.append(swapped(fleet, (step,), Node.cut_power)), seconds_after=3)
    assert len(load.failures) <= (fleet.clients if step == "drain" else 0), str(load)
    served = target if reports[0]["outcome"] == "done" else before
    fleet.wait_up()
    assert fleet.models()[1] == served and node.ask() == f"I am {served}."
    settled(node)
