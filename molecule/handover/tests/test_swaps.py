# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No client loses a request by a swap: all kinds of requests, and faults of gateways meanwhile.

One case without the mark `full` runs on each Debian release: all other cases take minutes. Comments name the nearest
test without the mark. CI does not run this scenario yet: the scenario `rolling` has the core of swaps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lab = Callable[[str], dict[str, Any]]

STEPS = ["begun", "bridge", "drain", "gate", "stop", "start", "probe", "admit", "watch", "prove", "unbridge"]

FEWEST = {"short": 50, "uploads": 20, "late": 20, "readers": 8, "tls": 50, "http2": 100, "sets": 20, "model": 50}
"""The fewest requests of a kind that must have succeeded."""


def unharmed(result: dict[str, Any], *outcomes: str) -> None:
    """No request failed, there were requests of each kind, and the swaps ended as given."""
    assert [swap["outcome"] for swap in result["swaps"]] == list(outcomes), result["swaps"]
    for kind, clients in result["clients"].items():
        assert not clients["failures"], (kind, clients)
        assert clients["succeeded"] >= FEWEST[kind], (kind, clients)


# Nearest: test_two_replicas_with_a_reload_in_each_step_lose_no_request, without slow readers and late answers.
@pytest.mark.full
def test_slow_clients_of_an_only_replica_lose_no_request(lab: Lab) -> None:
    """The clients send uploads slowly (the body comes after 15 s), read slower than the engine, or get late answers."""
    result = lab("shapes")
    unharmed(result, "done")
    assert result["reloads"] == STEPS


def test_two_replicas_with_a_reload_in_each_step_lose_no_request(lab: Lab) -> None:
    result = lab("pair")
    unharmed(result, "done", "done")
    assert result["reloads"] == STEPS * 2


# Nearest: test_two_replicas_with_a_reload_in_each_step_lose_no_request, without TLS.
@pytest.mark.full
@pytest.mark.parametrize(("case", "swaps"), [("tls", 2), ("tls-lone", 1)])
def test_tls_and_http2_with_a_reload_in_each_step_lose_no_request(lab: Lab, case: str, swaps: int) -> None:
    result = lab(case)
    unharmed(result, *["done"] * swaps)
    assert result["reloads"] == STEPS * swaps


# Nearest: tests/unit/plugins/module_utils/gateway/test_config.py compares which servers the backend of a model tracks.
@pytest.mark.full
def test_engines_of_one_model_in_two_sets_lose_no_request(lab: Lab) -> None:
    """The backend of the model tracks the servers of both sets, also in old processes."""
    result = lab("tracked")
    unharmed(result, "done", "done")
    assert result["reloads"], "no gateway was reloaded"


# Nearest: a gateway that is lost at any act, in tests/unit/plugins/module_utils/node/swap/test_perform.py.
@pytest.mark.full
@pytest.mark.parametrize("case", ["deaf", "deaf-in-the-middle", "lost", "lost-at-drain", "lost-at-start", "flushed"])
def test_a_gateway_that_does_not_check_the_agent_or_dies_loses_no_request(lab: Lab, case: str) -> None:
    """The gate refuses a gateway that has not heard of the drain, also after the gate's table was deleted."""
    unharmed(lab(case), "done")


# Nearest: tests/unit/plugins/module_utils/node/swap/test_way.py.
@pytest.mark.full
@pytest.mark.parametrize("case", ["deaf-lone", "lost-lone"])
def test_an_only_replica_does_not_swap_without_all_gateways(lab: Lab, case: str) -> None:
    result = lab(case)
    unharmed(result, "refused")
    assert "gw1 does not check this node's agent" in result["swaps"][0]["failure"]


# Nearest: tests/unit/plugins/module_utils/node/swap/test_leave.py, without clients.
@pytest.mark.full
def test_an_engine_that_hangs_loses_only_its_requests_in_flight(lab: Lab) -> None:
    result = lab("hung")
    assert [swap["outcome"] for swap in result["swaps"]] == ["done"], result["swaps"]
    # This is far below the limit of the drain.
    assert result["swaps"][0]["drained_seconds"] < 60, result["swaps"]
    assert result["reloads"] == STEPS
    clients = result["clients"]["short"]
    # Each client has at most one request at the engine that hangs. The others go on at the other engine.
    assert len(clients["failures"]) <= 10 and clients["succeeded"] >= FEWEST["short"], clients
