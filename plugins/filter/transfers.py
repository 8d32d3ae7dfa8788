# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the role model_store: check its settings, and assign models and sources to nodes.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import Node, Turn


def model_turns(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    active: Collection[str],
    network: int,
    source: int,
    peers: bool = True,
) -> dict[str, dict[str, str]]:
    """What each host fetches in the next turn, by host: the model's name, the source and the source's revision.

    The source is a host; for the network, source and revision are empty.
    """
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import Limits, deal

    nodes = [_node(host, hostvars[host], active) for host in hosts]
    turns = deal(nodes, Limits(network, source, peers))
    return {
        host: {"name": _name(turn), "source": turn.source, "revision": _revision(hostvars, turn)}
        for host, turn in turns.items()
    }


def model_origins(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    active: Collection[str],
    network: int,
    source: int,
    peers: bool = True,
) -> dict[str, list[str]]:
    """Lines with the source of each model, by host."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import Limits, foresee

    nodes = [_node(host, hostvars[host], active) for host in hosts]
    return {
        host: [_words(hostvars[host], turn) for turn in turns]
        for host, turns in foresee(nodes, Limits(network, source, peers)).items()
    }


def _node(host: str, variables: Mapping[str, Any], active: Collection[str]) -> Node:
    """A host's state, from the facts that the role sets."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import Node, Turn

    # An item is a model's name and a key of its content: the same content under another name is another item.
    remotes = {
        f"{name}.{each['key']}": each["revision"]
        for name, each in variables.get("__model_store_plan", {}).get("remotes", {}).items()
    }
    items = {item.rpartition(".")[0]: item for item in remotes}
    fetched, turn = variables.get("__model_store_fetched", {}), variables.get("__model_store_turns", {}).get(host)
    return Node(
        host,
        [item for item, revision in remotes.items() if not revision],
        {item for item, revision in remotes.items() if revision},
        set(variables.get("__model_store_refused", [])),
        {items[fetched["name"]]} if fetched.get("failed") and fetched.get("name") in items else set(),
        host in active,
        bool(variables.get("__model_store_gives", True)),
        Turn(items[turn["name"]], turn["source"]) if turn and turn["name"] in items else None,
    )


def _name(turn: Turn) -> str:
    return turn.model.rpartition(".")[0]


def _revision(hostvars: Mapping[str, Any], turn: Turn) -> str:
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import NETWORK

    if turn.source == NETWORK:
        return ""
    return str(hostvars[turn.source]["__model_store_plan"]["remotes"][_name(turn)]["revision"])


def _words(variables: Mapping[str, Any], turn: Turn) -> str:
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import NETWORK

    name = _name(turn)
    if turn.source != NETWORK:
        return f"{name} from {turn.source}, or from another node that has the model then"
    return next(each["summary"] for each in variables["__model_store_plan"]["fetches"] if each["name"] == name)


def store_problems(settings: Mapping[str, Any]) -> list[str]:
    """Every mistake in the role's settings."""
    from ansible_collections.baremetal.inference.plugins.module_utils.store.settings import problems

    return [str(problem) for problem in problems(settings)]


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"model_turns": model_turns, "model_origins": model_origins, "store_problems": store_problems}
