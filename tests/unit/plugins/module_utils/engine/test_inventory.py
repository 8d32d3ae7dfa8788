# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances of the inventory before they are checked, and the names of bridges."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.inventory import (
    bridge_name,
    bridged_instance,
    led_instances,
    models_once,
    node_instances,
    own_images,
    present_instances,
    want_gpus,
    with_models,
)


def instance(**changes: Any) -> dict[str, Any]:
    return {"name": "main", "model": "tiny-a", "port": 5005, **changes}


def test_absent_instances_are_left_out_and_mistakes_stay() -> None:
    instances = [instance(), instance(name="old", model="big", state="absent"), "a mistake"]
    assert present_instances(instances) == [instances[0], "a mistake"]


def test_images_that_instances_name_themselves_are_listed_once() -> None:
    images = [instance(image="a"), instance(image="b"), instance(image="a"), instance(image="c", state="absent")]
    assert own_images([*images, instance(), "a mistake"]) == ["a", "b"]


def test_a_node_has_its_own_instances_and_leads_some() -> None:
    big, odd = instance(name="big", nodes=["n1", "n2"]), instance(name="odd", nodes="n3")
    instances = [instance(), big, odd, "a mistake"]
    # A mistake stays everywhere, so that a check finds it.
    assert node_instances(instances, "n1") == node_instances(instances, "n2") == instances
    assert node_instances(instances, "n3") == [instance(), odd, "a mistake"]
    assert led_instances(instances, "n1") == instances
    assert led_instances(instances, "n2") == [instance(), odd, "a mistake"]


@pytest.mark.parametrize(
    ("instances", "wanted"),
    [
        ([], False),
        ([instance()], True),
        ([instance(accelerator="nvidia", gpus=[3])], True),
        ([instance(accelerator="cpu")], False),
        ([instance(accelerator="cpu"), instance(name="b")], True),
        ([instance(state="absent"), instance(name="b", accelerator="cpu"), "a mistake"], False),
    ],
)
def test_a_node_needs_gpus_unless_all_its_instances_are_absent_or_on_processors(
    instances: list[Any], wanted: bool
) -> None:
    assert want_gpus(instances) is wanted


def test_only_named_instances_get_another_model() -> None:
    odd = [instance(name=["next"]), "odd"]
    instances: list[Any] = [instance(), instance(name="next"), *odd]
    assert with_models(instances, {"next": "wide"}) == [instances[0], {**instances[1], "model": "wide"}, *odd]


def test_a_bridge_is_named_after_its_instance() -> None:
    assert bridge_name("main") == "main_bridge" and bridged_instance("main_bridge") == "main"
    assert bridged_instance("main") == ""


@pytest.mark.parametrize(
    ("given", "rest"),
    [
        ('{"main":"big","next":"wide"}', ""),
        ('{"main":', '"big", "next": "wide"}'),
        ({"main": "big", "next": "wide"}, ""),
    ],
)
def test_the_variable_set_may_have_blanks(given: object, rest: str) -> None:
    assert models_once(given, rest) == {"main": "big", "next": "wide"}


@pytest.mark.parametrize("given", ["main=big", '{"main":', '["main"]', '{"main":1}', ["main"]])
def test_a_wrong_value_of_the_variable_set_is_refused_with_the_right_form(given: object) -> None:
    with pytest.raises(ValueError) as refused:
        models_once(given)
    assert str(refused.value).startswith(f"set: found {given}, must be a dictionary of models by instance")
    assert """-e 'set={"main": "qwen3-8b"}'""" in str(refused.value)
