# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines that a node has reported, from the variables of the host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.reported import FACT, running

from ..conftest import instance_facts


def test_instances_that_have_started_are_known_by_name() -> None:
    variables = {FACT: {"instances": [instance_facts("main", "large", 2), instance_facts("side", "small", 1)]}}
    found = running(variables)
    assert {name: (one.model, one.release) for name, one in found.items()} == {
        "main": ("large", 2),
        "side": ("small", 1),
    }


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {FACT: None},
        {FACT: {"unreachable": True, "msg": "no route to host"}},
        {FACT: {"instances": [instance_facts("main", "large", None)]}},
        {FACT: {"instances": [instance_facts("main", "", 2)]}},
    ],
)
def test_without_a_started_instance_of_a_known_model_the_result_is_empty(variables: dict[str, Any]) -> None:
    assert running(variables) == {}
