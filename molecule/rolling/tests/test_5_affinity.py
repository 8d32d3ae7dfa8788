# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An update of engines whose gateway sends related requests to the same engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fleet import Fleet, instances, unharmed

AFFINITY: dict[str, Any] = {"gateway_affinity": "prefix", "gateway_verify_seconds": 0}


def counts(fleet: Fleet) -> dict[str, int]:
    """How many requests got the preferred engine, got another engine, or had no affinity key."""
    view = json.loads(fleet.gateway.run("curl -sf http://127.0.0.1:8404/sets/main"))
    return {str(word): int(number) for word, number in view["affinity"].items()}


@pytest.fixture
def model(fleet: Fleet) -> Iterator[str]:
    """The model that both nodes get. The gateway has affinity meanwhile."""
    served = fleet.models()[0]
    fleet.gateway.site("--tags", "gateway", instances=instances(served), **AFFINITY)
    yield "tiny-a" if served == "tiny-b" else "tiny-b"
    fleet.gateway.site("--tags", "gateway", instances=instances(served), gateway_verify_seconds=0)


@pytest.mark.full
def test_related_requests_find_an_engine_during_an_update(fleet: Fleet, model: str) -> None:
    """All clients send the same text, so that all prefer the same engine, which the update drains as well."""
    fleet.wait_up()
    load = fleet.load()
    report = load.during(lambda: fleet.update(instances=instances(model), **AFFINITY), seconds_after=10)
    unharmed(report)
    assert fleet.models() == [model] * 2
    # A reload during the update begins the counts anew.
    after = counts(fleet)
    assert after["preferred"] > after["other"] and after["keyless"] == 0, after
