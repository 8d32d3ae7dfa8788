# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The waits for an engine and for its share of requests, and the judgement of failed requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import gateways, serving
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView, Views
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import StepFailed
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import DEAF_SECONDS

from .fake_node import GATEWAY, NAME, SINCE, FakeNode

SWAP = Swap(1, 2, "run", SINCE, step=swaps.WATCH)


def view(status: str = "UP", weight: int = 100, requests: int = 0, failures: int = 0, started: float = 1.0) -> SetView:
    servers = {"node1": Server(status.startswith("UP"), status, weight, requests, failures)}
    return SetView(GATEWAY.name, True, started=started, servers=servers)


@pytest.fixture
def set_views(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the gateway's views, one after the other. The last view stays."""

    def set_all(*views: SetView) -> None:
        left = list(views)
        monkeypatch.setattr(
            gateways, "ask_all", lambda *_given: Views((left.pop(0) if len(left) > 1 else left[0],), {})
        )

    return set_all


def test_the_step_waits_for_the_full_share(fake: FakeNode, set_views: Callable[..., None]) -> None:
    set_views(view("DOWN"), view("UP", 20), view("UP", 99), view())
    assert serving.await_share(fake.node(), NAME, "node1") == serving.Share({}, {})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (view("DOWN 1/2"), "gw1 shows node1 as DOWN 1/2"),
        (view("UP", 40), "gw1 gives node1 40 % of its share"),
        (SetView("gw1", True), "gw1 has no server node1: run baremetal.inference.site there"),
    ],
)
def test_a_missing_share_is_reported_after_its_limit(
    fake: FakeNode, set_views: Callable[..., None], found: SetView, words: str
) -> None:
    set_views(found)
    began = fake.clock
    assert serving.await_share(fake.node(), NAME, "node1") == serving.Share({"gw1": words}, {})
    assert fake.clock - began >= serving.SHARE_SECONDS


def test_a_gateway_must_have_checked_the_agent_after_the_undrain(
    fake: FakeNode, set_views: Callable[..., None]
) -> None:
    """UP alone may be from before the drain."""
    set_views(view())
    fake.engines.clear()
    assert serving.await_share(fake.node(), NAME, "node1").short == {"gw1": "gw1 has not checked the agent again"}
    fake.deaf = True
    began = fake.clock
    assert serving.await_share(fake.node(), NAME, "node1").unheard == {"gw1": "gw1 has not checked the agent again"}
    assert fake.clock - began < 2 * DEAF_SECONDS


def test_errors_are_judged_by_the_share_that_failed(fake: FakeNode, set_views: Callable[..., None]) -> None:
    before = Views((view(requests=1000, failures=7),), {})
    set_views(view(requests=1100, failures=12))
    assert serving.judge_errors(fake.node(), SWAP, before, "node1") == ""
    set_views(view(requests=1100, failures=13))
    with pytest.raises(StepFailed, match=r"6 of 100 requests from gw1 to node1 failed .* allows a share of 0.05"):
        serving.judge_errors(fake.node(), SWAP, before, "node1")
    set_views(view(requests=1, failures=1, started=2.0))
    words = serving.judge_errors(fake.node(), SWAP, before, "node1")
    assert words == "failed requests at gw1 are unknown: it was reloaded or silent"


def test_the_step_waits_up_to_a_limit_for_an_engine_that_loads(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["loading"] * 3 + ["ready"]

    def wait_ready(_paths: object, names: list[str], seconds: float) -> list[wait.Outcome]:
        fake.clock += seconds
        return [wait.Outcome(names[0], states.pop(0) if states else "loading", "loading weights")]

    monkeypatch.setattr(wait, "wait_ready", wait_ready)
    serving.await_ready(fake.node(), NAME, 2)
    assert not states
    limit = releases.load(fake.paths, NAME, 2).start_timeout + serving.START_MARGIN_SECONDS
    began = fake.clock
    with pytest.raises(StepFailed, match=f"release 2 of main does not answer after {limit} s: loading weights"):
        serving.await_ready(fake.node(), NAME, 2)
    assert fake.clock - began >= limit


@pytest.mark.parametrize("patient", [False, True])
def test_members_of_a_gang_may_be_missing_for_ever_only_on_the_way_back(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch, patient: bool
) -> None:
    node, began = fake.node(), fake.clock
    away = 100_000.0
    monkeypatch.setattr(
        serving.members, "absent", lambda _node: ["gpu-1 (is off)"] if fake.clock - began < away else []
    )

    def loads(*_given: object) -> list[wait.Outcome]:
        fake.clock += serving.READY_SECONDS
        ready = fake.clock - began > away
        return [wait.Outcome(NAME, "ready" if ready else "loading", "waits")]

    monkeypatch.setattr(wait, "wait_ready", loads)
    if patient:
        serving.await_ready(node, NAME, 1, patient=True)
        return
    with pytest.raises(StepFailed, match=r"release 1 of main has waited 180 s for gpu-1 \(is off\)"):
        serving.await_ready(node, NAME, 1)


def test_a_release_that_served_before_gets_no_golden_prompts(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    fake.settings = replace(fake.settings, golden={"tiny-a": [{"prompt": "1+1", "expect": "2"}]})
    monkeypatch.setattr(serving.proof, "accept", lambda *given, **more: asked.append((given[3], more)))
    for swap in (SWAP, replace(SWAP, returning=True), replace(SWAP, back=True)):
        serving.accept(fake.node(), NAME, 2, swap)
    unmeasured = {"origin": None, "speed_bound": 0.0}
    assert asked == [([{"prompt": "1+1", "expect": "2"}], unmeasured), ([], unmeasured), ([], unmeasured)]


def test_adapters_get_their_own_golden_prompts(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    golden = {name: [{"prompt": "Who?", "expect": name}] for name in ("tiny-a", "legal", "other")}
    fake.settings = replace(fake.settings, golden=golden)
    release = replace(releases.load(fake.paths, NAME, 2), lora={"legal": "/mnt/models/legal/0123456789ab"})
    monkeypatch.setattr(serving.releases, "load", lambda *_given: release)
    monkeypatch.setattr(serving.proof, "accept", lambda *given, **_more: asked.append(given[3]))
    serving.accept(fake.node(), NAME, 2, SWAP)
    assert asked == [[*golden["tiny-a"], {"prompt": "Who?", "expect": "legal", "model": "legal"}]]
