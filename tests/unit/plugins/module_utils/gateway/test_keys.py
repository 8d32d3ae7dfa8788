# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients' keys."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Fleet, Replica, fleet_of
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.keys import (
    NO_LIMIT,
    Key,
    allowed_backends,
    key_maps,
    read_keys,
)

GOOD = "a-key-of-20-letters-"
DIGEST = hashlib.sha256(GOOD.encode()).hexdigest()


@pytest.fixture
def fleet(replicas: list[Replica]) -> Fleet:
    return fleet_of(replicas)


def test_only_the_checksum_gets_into_the_maps(fleet: Fleet) -> None:
    keys, problems = read_keys([{"name": "alice", "key": GOOD}], fleet, 0, 128)
    maps = key_maps(keys, fleet)
    assert not problems
    assert maps["keys.map"] == f"{DIGEST} alice\n"
    assert maps["rates.map"] == f"alice {NO_LIMIT}\n"
    assert maps["concurrency.map"] == "alice 128\n"
    assert GOOD not in str(maps) and GOOD not in repr(keys)


def test_a_key_may_be_given_by_its_checksum(fleet: Fleet) -> None:
    given = {"name": "a", "sha256": DIGEST, "requests_per_minute": 5, "concurrent_requests": 0}
    keys, problems = read_keys([given], fleet, 9, 9)
    assert not problems
    maps = key_maps(keys, fleet)
    assert maps["keys.map"] == f"{DIGEST} a\n"
    assert (maps["rates.map"], maps["concurrency.map"]) == ("a 5\n", f"a {NO_LIMIT}\n")


@pytest.mark.parametrize(
    ("models", "backends"),
    [
        (None, {"set_batch", "set_chat", "set_code", "model_large"}),
        (["chat"], {"set_chat"}),
        (["large"], {"set_batch", "set_chat", "model_large"}),
        (["chat", "batch"], {"set_batch", "set_chat", "model_large"}),
        (["Org/Coder"], {"set_code"}),
        ([], set()),
    ],
)
def test_a_right_applies_to_engines(fleet: Fleet, models: list[str] | None, backends: set[str]) -> None:
    """A key may use a name if it may use all engines of the name."""
    given = {"name": "a", "key": GOOD, **({} if models is None else {"models": models})}
    keys, problems = read_keys([given], fleet, 0, 0)
    assert not problems
    lines = key_maps(keys, fleet)["rights.map"].splitlines()
    assert {line.split(" ")[0].removeprefix("a|") for line in lines} == backends


def replica(host: str, model: str) -> Replica:
    """An engine of the set `main`. The inventory asks for the model `new`."""
    return Replica(host, "192.0.2.1", "main", model, 5005, declared="new")


@pytest.mark.parametrize(
    ("served", "models", "backends"),
    [
        # No node has the new model: before the update, or after a rollback.
        (("old", "old"), ["new"], {"set_main"}),
        (("old", "old"), ["old"], {"set_main"}),
        # One of two nodes has the new model.
        (("new", "old"), ["new"], {"set_main", "model_new", "model_old"}),
        (("new", "old"), ["old"], {"model_old"}),
        (("new", "old"), ["old", "new"], {"set_main", "model_new", "model_old"}),
        # Both nodes have the new model.
        (("new", "new"), ["old", "new"], {"set_main"}),
        (("new", "new"), ["old"], set()),
    ],
)
def test_an_update_takes_no_right_from_a_key_that_names_the_new_model(
    served: tuple[str, str], models: list[str], backends: set[str]
) -> None:
    fleet = fleet_of([replica("a", served[0]), replica("b", served[1])], ["old", "new"])
    keys, problems = read_keys([{"name": "a", "key": GOOD, "models": models}], fleet, 0, 0)
    assert not problems
    lines = key_maps(keys, fleet)["rights.map"].splitlines()
    assert {line.split(" ")[0].removeprefix("a|") for line in lines} == backends


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("alice", "must be a dictionary"),
        ({"name": "a b", "key": GOOD}, "name: 'a b'"),
        ({"key": GOOD}, "without a name"),
        ({"name": "a"}, "either `key` or `sha256`"),
        ({"name": "a", "key": GOOD, "sha256": DIGEST}, "either `key` or `sha256`"),
        ({"name": "a", "key": "fifteen-letters"}, "16 to 512"),
        ({"name": "a", "key": "sixteen letters with blanks"}, "16 to 512"),
        ({"name": "a", "sha256": DIGEST.upper()}, "64 lower-case"),
        ({"name": "a", "key": GOOD, "models": "chat"}, "must be a list"),
        ({"name": "a", "key": GOOD, "models": ["chta"]}, "did you mean 'chat'"),
        ({"name": "a", "key": GOOD, "models": [{"name": "chat"}]}, "is served by no instance"),
        ({"name": "a", "key": GOOD, "rpm": 5}, "is not a key of an entry"),
        ({"name": "a", "key": GOOD, "requests_per_minute": -1}, "0 for no limit"),
        ({"name": "a", "key": GOOD, "concurrent_requests": True}, "0 for no limit"),
        ({"name": "anonymous", "key": GOOD}, "is taken"),
    ],
)
def test_a_mistake_is_reported_without_the_key(fleet: Fleet, entry: Any, words: str) -> None:
    keys, problems = read_keys([entry], fleet, 0, 0)
    text = "\n".join(map(str, problems))
    assert not keys and words in text
    if isinstance(entry, dict) and "key" in entry:
        assert entry["key"] not in text


def test_a_name_or_key_must_not_occur_twice(fleet: Fleet) -> None:
    _keys, problems = read_keys([{"name": "a", "key": GOOD}, {"name": "b", "sha256": DIGEST}], fleet, 0, 0)
    assert ["has the same key as gateway_keys[0] (a)" in str(problem) for problem in problems] == [True]
    _keys, problems = read_keys([{"name": "a", "key": GOOD}, {"name": "a", "key": GOOD + "x"}], fleet, 0, 0)
    assert ["is taken" in str(problem) for problem in problems] == [True]
    # A name is taken even if its first entry has another mistake. Entries without a name have no name in common.
    wrong = {"name": "a", "key": "short"}
    _keys, problems = read_keys([wrong, {"name": "a", "key": GOOD}, {"key": GOOD + "x"}, {}], fleet, 0, 0)
    assert ["gateway_keys[1] (a)" in str(problem) for problem in problems if "is taken" in str(problem)] == [True]


def test_a_right_to_an_adapter_applies_to_its_engines() -> None:
    """An update takes the adapter from the engine of gpu1, and brings the adapter to the engine of gpu2."""
    engines = [
        Replica("gpu1", "192.0.2.11", "chat", "large", 5005, adapters=("legal",)),
        Replica("gpu2", "192.0.2.12", "chat", "large", 5005, declared_adapters=("legal",)),
        Replica("gpu3", "192.0.2.13", "other", "small", 5005),
    ]
    fleet = fleet_of(engines)
    names = {backend.name for backend in allowed_backends(Key("legal", "0" * 64, ("legal",), 0, 0), fleet)}
    assert names == {fleet.routes["chat"].name, fleet.routes["legal"].name}
