# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads instances of the inventory before they are checked, and names bridges.

Private to the collection. Ansible sends this file with modules that need only names of instances, without the files
that check instances.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_BRIDGE = "_bridge"
"""The end of a bridge's name. No instance has an underscore in its name, so no instance is mistaken for a bridge."""

_NEXT = "_next"


def bridge_name(instance: str) -> str:
    """The bridge of an instance: a second engine that serves in its place while an update swaps it."""
    return f"{instance}{_BRIDGE}"


def next_name(instance: str) -> str:
    """The name of an instance's second server at gateways, at the address and port of its next release."""
    return f"{instance}{_NEXT}"


def next_instance(name: str) -> str:
    """The instance of a second server; empty where `name` is not the name of a second server."""
    return name.removesuffix(_NEXT) if name.endswith(_NEXT) else ""


def bridged_instance(name: str) -> str:
    """The instance that a bridge serves for; empty where `name` is not the name of a bridge."""
    return name.removesuffix(_BRIDGE) if name.endswith(_BRIDGE) else ""


def present_instances(instances: Sequence[Any]) -> list[Any]:
    """The instances that are not declared absent; an item that is no dictionary stays, for load_instances to report."""
    return [item for item in instances if not isinstance(item, Mapping) or item.get("state") != "absent"]


def own_images(instances: Sequence[Any]) -> list[str]:
    """The images that present instances name themselves (`image`), in place of `engine_image`, each once."""
    present = (item for item in present_instances(instances) if isinstance(item, Mapping))
    return list(dict.fromkeys(str(item["image"]) for item in present if item.get("image")))


def node_instances(instances: Sequence[Any], node: str) -> list[Any]:
    """The instances that run on a node: those without `nodes`, and those whose `nodes` name the node.

    An item whose `nodes` are no list of names stays, for load_instances to report.
    """

    def elsewhere(item: Any) -> bool:
        nodes = item.get("nodes") if isinstance(item, Mapping) else None
        return isinstance(nodes, list) and node not in nodes and all(isinstance(name, str) for name in nodes)

    return [item for item in instances if not elsewhere(item)]


def led_instances(instances: Sequence[Any], node: str) -> list[Any]:
    """The instances whose API a node has: those without `nodes`, and those whose first node is this node."""

    def follows(item: Any) -> bool:
        nodes = item.get("nodes") if isinstance(item, Mapping) else None
        return isinstance(nodes, list) and nodes[:1] != [node]

    return [item for item in node_instances(instances, node) if not follows(item)]


def want_gpus(instances: Sequence[Any]) -> bool:
    """Whether any instance that is not declared absent runs on GPUs."""
    present = [item for item in present_instances(instances) if isinstance(item, Mapping)]
    return any(item.get("accelerator") != "cpu" for item in present)


def with_models(instances: Sequence[Any], models: Mapping[str, str]) -> list[Any]:
    """All instances. Those that `models` names get their model from `models`. An item with a mistake stays.

    Every instance is needed: an instance with a number of GPUs gets GPUs that no other instance lists.
    """
    named = [item.get("name") if isinstance(item, Mapping) else None for item in instances]
    return [
        {**item, "model": models[name]} if isinstance(name, str) and name in models else item
        for item, name in zip(instances, named, strict=True)
    ]


SECRETS = "secret_environment"
"""The key of an instance with its secret variables."""


def without_secrets(instances: Sequence[Any]) -> list[Any]:
    """The instances without their secret variables, for modules and logs."""
    return [
        {key: value for key, value in item.items() if key != SECRETS} if isinstance(item, Mapping) else item
        for item in instances
    ]


def secrets(instances: Sequence[Any]) -> dict[str, Any]:
    """The secret variables of the present instances that have some, by the instance's name."""
    return {
        str(item.get("name")): item[SECRETS]
        for item in present_instances(instances)
        if isinstance(item, Mapping) and item.get(SECRETS)
    }


def models_once(given: object, rest: str = "") -> dict[str, str]:
    """The models of `-e set=…`, by instance.

    Ansible cuts a text without quotes at its first blank: `given` is the text before, `rest` the text after. Raises
    ValueError where the two together are no dictionary of models.
    """
    text = f"{given} {rest}".strip()
    found = given
    if isinstance(given, str):
        with suppress(ValueError):
            found = json.loads(text)
    if not isinstance(found, Mapping) or not all(isinstance(model, str) for model in found.values()):
        raise ValueError(
            f"set: found {text}, must be a dictionary of models by instance, in an -e of its own:"
            """ -e 'set={"main": "qwen3-8b"}', or -e '{"set": {"main": "qwen3-8b"}}'"""
        )
    return dict(found)
