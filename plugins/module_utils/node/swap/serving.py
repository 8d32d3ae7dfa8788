# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until an engine is ready, and until gateways send it requests; judges failed requests.
Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...engine.probe import acceptance, wait
from ...engine.release import Release
from ...engine.state import releases
from ...engine.state.swaps import Swap
from . import gateways, members, proof
from .gateways import SetView, Views
from .node import POLL_SECONDS, Node, StepFailed
from .traffic import DEAF_SECONDS, FRESH_SECONDS

START_MARGIN_SECONDS = 180
"""Seconds in addition to the release's start timeout:
the preparation takes up to 2 minutes, and the supervisor must report a failure first."""

READY_SECONDS = 5.0
"""Seconds of one wait for an engine that loads. Between two waits, its time limit is checked."""

SHARE_SECONDS = 260.0
"""How long gateways may take to give the full share.
gateway_slow_start_seconds is at most 180, and starts when agent and health checks report up."""

FULL_WEIGHT = 100


def await_ready(node: Node, name: str, number: int, *, patient: bool = False) -> None:
    """Wait until a release is ready. Raises StepFailed if the release does not become ready in time.

    `patient`: the members of a gang may be missing for any time, and the release's time limit begins when all are
    there.
    """
    limit = releases.load(node.paths, name, number).start_timeout + START_MARGIN_SECONDS
    began = node.traffic.clock()
    deadline = began + limit
    while True:
        if missing := members.absent(node):
            if patient:
                deadline = node.traffic.clock() + limit
            elif node.traffic.clock() >= began + members.MOVE_SECONDS:
                waited = f"has waited {members.MOVE_SECONDS:.0f} s for {', '.join(missing)}"
                raise StepFailed(f"release {number} of {name} {waited}")
        outcome = wait.wait_ready(node.paths, [name], READY_SECONDS)[0]
        if outcome.state == "ready":
            return
        if outcome.state == "failed":
            raise StepFailed(f"release {number} of {name} does not start. Its last log lines:\n{outcome.last_words}")
        if node.traffic.clock() >= deadline:
            raise StepFailed(f"release {number} of {name} does not answer after {limit} s: {outcome.status}")


def accept(node: Node, name: str, number: int, swap: Swap, *, measure: bool = False) -> acceptance.Result:
    release = releases.load(node.paths, name, number)
    # The model registry's golden prompts do not judge a release that served before.
    asked = not swap.returning and not swap.back
    return proof.accept(
        node.paths,
        name,
        number,
        _golden(node.settings.golden, release) if asked else [],
        origin=swap.origin if measure else None,
        speed_bound=swap.terms.speed_bound if measure else 0.0,
    )


def _golden(golden: Mapping[str, Sequence[Mapping[str, Any]]], release: Release) -> list[Mapping[str, Any]]:
    """The golden prompts of a release's model and of its adapters."""
    adapters = [{**item, "model": adapter} for adapter in release.lora for item in golden.get(adapter, [])]
    return [*golden.get(release.model, []), *adapters]


@dataclass(frozen=True)
class Share:
    """Gateways that do not give a server its full share (`short`), and gateways that do not answer or do not check the
    agent (`unheard`); with reasons."""

    short: Mapping[str, str]
    unheard: Mapping[str, str]


def await_share(node: Node, name: str, server: str) -> Share:
    """Wait until all gateways give a server its full share, for SHARE_SECONDS at most."""
    began = node.traffic.clock()
    while True:
        share = share_of(node, name, server)
        waited = node.traffic.clock() - began
        # A gateway without an answer gets no more time than a gateway that does not check the agent.
        if not (share.short or share.unheard) or waited >= (SHARE_SECONDS if share.short else DEAF_SECONDS):
            return share
        node.traffic.sleep(min(FRESH_SECONDS, max(POLL_SECONDS, waited / 10)))


def share_of(node: Node, name: str, server: str) -> Share:
    """Which gateways do not give a server its full share now, or are silent."""
    views, deaf = node.ask(), node.traffic.deaf(name)
    short = {view.gateway: words for view in views.shown if (words := _short(view, server))}
    unheard = dict(views.silent)
    for one in node.traffic.unconfirmed(name, "up"):
        # A gateway that does not reach the agent relies on its health checks, which is no reason against the engine.
        missing = unheard if one in deaf else short
        if one not in short and one not in unheard:
            missing[one] = f"{one} has not checked the agent again"
    return Share(short, unheard)


def judge_errors(node: Node, swap: Swap, before: Views, server: str) -> str:
    """The gateways for which failed requests are unknown, as text. Raises StepFailed if too many requests failed."""
    after = {view.gateway: view for view in node.ask().shown}
    unknown = []
    for view in before.shown:
        share = gateways.failed_share(view, after[view.gateway], server) if view.gateway in after else None
        if share is None:
            unknown.append(view.gateway)
            continue
        failures, requests = share
        if failures > swap.terms.error_share * requests:
            raise StepFailed(
                f"{failures} of {requests} requests from {view.gateway} to {server} failed while it was watched;"
                f" update_error_share allows a share of {swap.terms.error_share}"
            )
    return f"failed requests at {', '.join(unknown)} are unknown: it was reloaded or silent" if unknown else ""


def _short(view: SetView, server: str) -> str:
    """Why a gateway does not give a server its full share; empty if it does."""
    found = view.servers.get(server)
    if found is None:
        return f"{view.gateway} has no server {server}: run baremetal.inference.site there"
    if not found.up:
        return f"{view.gateway} shows {server} as {found.status}"
    return f"{view.gateway} gives {server} {found.weight} % of its share" if found.weight < FULL_WEIGHT else ""
