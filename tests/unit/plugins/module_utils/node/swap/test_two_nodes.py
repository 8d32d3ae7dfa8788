# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes of one set swap their instances at the same time, and one of them always serves.

Each node is a thread. Only one of them runs at any time: it hands over at each act and each sleep, by a clock that both
share. The seed decides how long an act takes, and so the order of the acts of both nodes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Report
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import leave
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import Traffic

from .fake_node import NAME, Broken, FakeNode, holds

SEEDS = 12

ACT_SECONDS = 0.6
"""The longest time of an act: longer than the pause between two looks of a swap."""

LATER_SECONDS = (0.5, 2.0, 12.0)
"""The longest delay of the second node: it then begins in the same step, a step later, or at any time of a swap."""

LIMIT_SECONDS = 60.0
"""Seconds of the machine's clock after which a test is stuck."""


class Pair:
    """Two nodes, of which one runs at a time."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.chance = random.Random(seed)
        self.nodes = [FakeNode(root / name, monkeypatch, name) for name in ("node1", "node2")]
        self.current = 0
        self.now = 1000.0
        self.wakes = [1000.0, 1000.0 + self.chance.uniform(0, LATER_SECONDS[seed % len(LATER_SECONDS)])]
        self.alive = [True, True]
        self.turns = [threading.Semaphore(0), threading.Semaphore(0)]
        self.reports: list[Report | None] = [None, None]
        self.errors: list[BaseException] = []
        for own, other in ((0, 1), (1, 0)):
            self.nodes[own].other = self.nodes[other]
            monkeypatch.setattr(self.nodes[own], "sleep", partial(self._sleep, own))
            monkeypatch.setattr(self.nodes[own], "act", partial(self._act, own, self.nodes[own].act))
        # The thread that keeps a gate closed would not wait for its turn.
        monkeypatch.setattr(Traffic, "kept_closed", lambda *_given: nullcontext())
        both = zip(*(node.fakes() for node in self.nodes), strict=True)
        for (module, name, first), (_module, _name, second) in both:
            monkeypatch.setattr(module, name, partial(self._dispatch, (first, second)))

    def _dispatch(self, fakes: tuple[Callable[..., Any], ...], *given: Any, **more: Any) -> Any:
        return fakes[self.current](*given, **more)

    def _act(self, own: int, act: Callable[..., Any], *given: Any) -> Any:
        if not self.nodes[own]._resting:
            self._wait(own, self.chance.uniform(0, ACT_SECONDS))
        return act(*given)

    def _sleep(self, own: int, seconds: float) -> None:
        self._wait(own, seconds)
        self.nodes[own]._world_goes_on()

    def _wait(self, own: int, seconds: float) -> None:
        self.wakes[own] = self.now + seconds
        self._hand_over()
        if not self.turns[own].acquire(timeout=LIMIT_SECONDS) or self.errors:
            raise Broken("the other node has failed")

    def _hand_over(self) -> None:
        if not self.errors:
            self.check()
        waiting = [node for node in (0, 1) if self.alive[node]]
        if waiting:
            self.current = min(waiting, key=lambda node: self.wakes[node])
            self.now = max(self.now, self.wakes[self.current])
            for node in self.nodes:
                node.clock = self.now
            self.turns[self.current].release()

    def check(self) -> None:
        """Check that a node takes requests: its engine runs, has passed its probe, and has an open gate."""
        taking = [
            name
            for name, node in zip(("node1", "node2"), self.nodes, strict=True)
            if (engine := node.engines.get(NAME)) and engine.fit and node.port(NAME) not in node.closed
        ]
        holds(taking, f"no node takes requests: {[node.swap() for node in self.nodes]}")

    def _lead(self, own: int) -> None:
        self.turns[own].acquire()
        try:
            self.reports[own] = self.nodes[own].run()
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.alive[own] = False
            self._hand_over()

    def run(self) -> list[str]:
        """Run both swaps to their ends. Returns their outcomes."""
        for own, node in enumerate(self.nodes):
            self.current = own
            node.serve()
            node.begin()
        threads = [threading.Thread(target=self._lead, args=(own,), daemon=True) for own in (0, 1)]
        for thread in threads:
            thread.start()
        self._hand_over()
        for thread in threads:
            thread.join(LIMIT_SECONDS)
        if self.errors:
            raise self.errors[0]
        outcomes = []
        for own, node in enumerate(self.nodes):
            self.current = own
            outcomes.append(node.check_end(self.reports[own]))
        return outcomes


@pytest.mark.once
@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_of_two_nodes_always_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    pair = Pair(tmp_path, monkeypatch, seed)
    outcomes = pair.run()
    assert swaps.DONE in outcomes and set(outcomes) <= {swaps.DONE, swaps.REFUSED}, pair.reports
    for report in pair.reports:
        if report and report.outcome == swaps.REFUSED:
            assert "goes first" in report.failure or "without this node" in report.failure, report.failure


def test_without_the_check_after_the_drain_no_node_would_take_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This shows that test_one_of_two_nodes_always_serves can fail."""
    monkeypatch.setattr(leave, "_refuse_last", lambda *_given: None)
    with pytest.raises(Broken, match=r"no node takes requests|the other node has failed"):
        for seed in range(SEEDS):
            Pair(tmp_path / str(seed), monkeypatch, seed).run()
