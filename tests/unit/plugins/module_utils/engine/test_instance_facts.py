# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of engine_facts as JSON, and read from JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import (
    BridgeFacts,
    Endpoint,
    InstanceFacts,
    UpdateFacts,
)

INSTANCE = InstanceFacts(
    name="main",
    model="tiny-a",
    release=3,
    serving=True,
    running=True,
    swapping=False,
    drained_by="mira",
    drain_reason="disk",
    load_seconds=4.5,
    endpoints=(Endpoint("192.0.2.11", 5005, ("5e6f7a8b",)),),
    adapters=("legal",),
    tasks=("embed", "score"),
)
UPDATE = UpdateFacts(
    name="main",
    model="tiny-a",
    runs="tiny-a r image",
    origin=None,
    target=2,
    due=True,
    interrupted=False,
    serving=False,
    load_seconds=None,
    drained_by="",
    drained_until="",
    bridge=BridgeFacts("main_bridge", 5105, ("0", "1"), left=True, certain=False, problem="no GPU"),
    problems=("a", "b"),
    coming=Endpoint("0.0.0.0", 5006, ("1a2b3c4d",)),
)


@pytest.mark.parametrize("facts", [INSTANCE, UPDATE])
def test_facts_come_back_from_json(facts: InstanceFacts | UpdateFacts) -> None:
    value = json.loads(json.dumps(facts.to_dict()))
    assert set(value) == {item.name for item in dataclasses.fields(facts)}
    assert type(facts).from_dict({**value, "invocation": {}}) == facts


def test_facts_with_a_missing_field_are_refused() -> None:
    value = INSTANCE.to_dict()
    del value["serving"]
    with pytest.raises(TypeError, match="serving"):
        InstanceFacts.from_dict(value)
