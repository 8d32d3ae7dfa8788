# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that make turns from the facts that the role model_store sets."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.filter.transfers import model_origins, model_turns, store_problems


def facts(revision: str = "", name: str = "m", key: str = "k1", **more: Any) -> dict[str, Any]:
    fetches = [] if revision else [{"name": name, "summary": f"{name} from https://x/m.tar: 1 GiB to fetch"}]
    plan = {"remotes": {name: {"key": key, "revision": revision}}, "fetches": fetches}
    return {"__model_store_plan": plan, **more}


def turns(hostvars: dict[str, Any], active: list[str] | None = None, **more: Any) -> dict[str, tuple[str, str, str]]:
    found = model_turns(hostvars, hostvars, active or list(hostvars), network=4, source=4, **more)
    return {host: (turn["name"], turn["source"], turn["revision"]) for host, turn in found.items()}


def test_a_peer_gives_the_revision_in_its_store() -> None:
    assert turns({"a": facts(), "b": facts("r1")}) == {"a": ("m", "b", "r1")}
    assert turns({"a": facts(), "b": facts("r1")}, peers=False) == {"a": ("m", "", "")}
    assert turns({"a": facts(), "b": facts("r1")}, active=["a"]) == {"a": ("m", "", "")}


def test_a_model_with_the_same_name_and_another_key_is_another_model() -> None:
    assert turns({"a": facts(key="k2"), "b": facts("r1")}) == {"a": ("m", "", "")}


def test_a_refused_peer_is_not_a_source_again() -> None:
    hostvars = {"a": facts(__model_store_refused=["b"]), "b": facts("r1"), "c": facts("r1")}
    assert turns(hostvars) == {"a": ("m", "c", "r1")}


def test_after_a_failed_fetch_all_other_nodes_fetch_from_the_network() -> None:
    failed = facts(__model_store_fetched={"failed": True, "name": "m"})
    hostvars = {"a": failed, "b": facts(), "c": facts()}
    dealt = {"b": ("m", "", ""), "c": ("m", "", "")}
    assert turns(hostvars, active=["b", "c"]) == dealt
    # This holds in later turns, too, in which the failed node does not take part.
    last = {host: {"name": "m", "source": ""} for host in "bc"}
    hostvars = {host: {**each, "__model_store_turns": last} for host, each in hostvars.items()}
    assert turns(hostvars, active=["b", "c"]) == dealt
    assert turns({"b": facts(), "c": facts()}) == {"b": ("m", "", "")}


def test_a_node_that_fetches_goes_on() -> None:
    last = {"b": {"name": "m", "source": ""}}
    hostvars = {host: facts(__model_store_turns=last) for host in "ab"}
    assert turns(hostvars) == {"b": ("m", "", "")}


def test_no_node_waits_for_a_host_that_other_nodes_do_not_reach() -> None:
    hostvars = {host: facts(__model_store_gives=False) for host in "ab"}
    assert turns(hostvars) == {"a": ("m", "", ""), "b": ("m", "", "")}


def test_a_host_without_facts_of_the_role_gives_and_wants_no_model() -> None:
    assert turns({"a": {}, "b": facts()}) == {"b": ("m", "", "")}


def test_origins_are_lines_with_the_source_of_each_model() -> None:
    hostvars = {"a": facts(), "b": facts(), "c": facts("r1", name="other")}
    assert model_origins(hostvars, hostvars, list(hostvars), network=4, source=4) == {
        "a": ["m from https://x/m.tar: 1 GiB to fetch"],
        "b": ["m from a, or from another node that has the model then"],
        "c": [],
    }


def test_the_mistakes_of_a_store_are_texts() -> None:
    settings = {"path": "models", "fast_path": "", "reserve_gib": 5, "fast_limit_gib": 0}
    numbers = {"parallel_transfers": 0, "peer_transfers": 1, "keep": 1}
    first, second = store_problems({**settings, **numbers})
    assert "model_store_path: 'models'" in first and "model_store_parallel_transfers: 0" in second
