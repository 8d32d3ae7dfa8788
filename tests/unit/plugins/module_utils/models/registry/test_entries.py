# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry's entries: their values, and each mistake with its message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.engine.served import served_models
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import arguments
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import (
    OWN_KEYS,
    Registry,
    read,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.text import load_registry

FLAGS = choose("0.32.0")
PUBLISHED = Path(__file__).parent / "data/models.yml"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def reading(models: Any) -> Registry:
    return read(models, FLAGS)


def mistakes(**models: Any) -> list[str]:
    return [str(problem) for problem in reading(models).problems]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, "models.x: model: is required"),
        ("text", "models.x: must be a dictionary of keys, found str"),
        ({"model": "m", "revision": 7}, "models.x: revision: 7: must be a text: put it in quotes"),
        ({"model": ""}, "models.x: model: '': is empty: give a text, or remove the key"),
        ({"model": ["m"]}, "models.x: model: ['m']: must be one text, found a list"),
        ({"model": "m", "description": None}, "models.x: description: must be a text"),
        ({"model": "m", "max_model_len": 5}, "write 'max-model-len'"),
        ({"model": "m", "--dtype": "half"}, "write 'dtype'"),
        ({"model": "m", "system_prompt": "p"}, "write 'system-prompt'"),
        ({"model": "m", "descripton": "d"}, "did you mean 'description'?"),
        ({"model": "m", 8: "d"}, "models.x: has the key 8, which YAML does not read as a text: put it in quotes"),
        ({"model": "m", "base": "y"}, "models.x: model: 'm': belongs to the base"),
        ({"base": "y", "revision": COMMIT}, "models.x: revision: '0123456789abcdef0123456789abcdef01234567': belongs"),
        (
            {"base": "yy"},
            "models.x: base: 'yy': must be another entry of the model registry: did you mean 'y'? known: y",
        ),
        ({"base": ["y"]}, "models.x: base: ['y']: must be another entry"),
        ({"base": "x"}, "models.x: base: 'x': goes in a circle, x → x"),
        ({"model": "m", "system-prompt": " "}, "models.x: system-prompt: ' ': is empty: give a text"),
        ({"model": "m", "golden-prompts": []}, "models.x: golden-prompts: []: must be a list, and not empty"),
        ({"model": "m", "golden-prompts": [{"prompt": "a"}]}, "with prompt, expect (a regular expression)"),
        (
            {"model": "m", "golden-prompts": [{"prompt": "a", "expect": "b", "x": 1}]},
            "prompt 1 must be a dictionary",
        ),
        ({"model": "m", "golden-prompts": [{"prompt": "a", "expect": "("}]}, "is not a regular expression"),
        (
            {"model": "m", "golden-prompts": [{"prompt": "a", "expect": "b", "max-tokens": 0}]},
            "not a whole number from 1",
        ),
        ({"model": "m", "system-prompt-policy": "always"}, "does nothing without system-prompt"),
        ({"base": "y", "system-prompt": "p", "system-prompt-policy": "ever"}, "must be one of default, always"),
        ({"model": "m", "allow-remote-code": "yes"}, "models.x: allow-remote-code: 'yes': must be true or false"),
    ],
)
def test_a_wrong_value_of_a_key_of_the_collection_is_a_problem(entry: Any, expected: str) -> None:
    (found,) = mistakes(x=entry, y={"model": "m"})
    assert expected in found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"allow-remote-code": True, "revision": COMMIT}, []),
        ({"revision": COMMIT}, ["models.x: trust-remote-code: True: runs code that comes with the model"]),
        ({"allow-remote-code": False, "revision": COMMIT}, ["trust-remote-code: True: runs code"]),
        ({"allow-remote-code": True}, ["models.x: revision: must pin the code that trust-remote-code runs: write"]),
        ({"allow-remote-code": True, "revision": f"{COMMIT}\n"}, [f"revision: {COMMIT + chr(10)!r}: must pin"]),
        ({"allow-remote-code": True, "revision": "main"}, ["models.x: revision: 'main': must pin"]),
        ({"allow-remote-code": True, "revision": COMMIT[:12]}, ["write a commit, 40 hexadecimal digits"]),
        ({"allow-remote-code": True, "revision": COMMIT[:12], "model": "/srv/m"}, []),
        ({"allow-remote-code": True, "model": "https://x/m.tar"}, ["runs: write the archive's checksum, sha256:"]),
        (
            {"allow-remote-code": True, "model": "controller:/srv/m"},
            ["write the store's revision, 12 hexadecimal digits"],
        ),
        ({}, ["trust-remote-code: True: runs code", "revision: must pin"]),
        ({"trust-remote-code": False}, []),
    ],
)
def test_code_of_a_model_must_be_allowed_and_pinned(changes: dict[str, Any], expected: list[str]) -> None:
    found = mistakes(x={"model": "org/repo", "trust-remote-code": True, **changes})
    assert len(found) == len(expected)
    assert all(text in line for text, line in zip(expected, found, strict=True))


def test_a_variant_may_not_run_code_that_its_base_does_not_pin() -> None:
    assert len(mistakes(x={"model": "org/repo"}, y={"base": "x", "trust-remote-code": True})) == 2
    base = {"model": "org/repo", "revision": COMMIT, "allow-remote-code": True}
    assert mistakes(x=base, y={"base": "x", "trust-remote-code": True}) == []


def test_a_variant_has_all_keys_of_its_base_but_the_description() -> None:
    registry = reading(
        {
            "calm": {"base": "pirate", "system-prompt": "Be calm.", "max-model-len": 64},
            "pirate": {"base": "tiny", "description": "Arr", "system-prompt": "Arr.", "system-prompt-policy": "always"},
            "tiny": {"model": "/m", "revision": "abc", "description": "Tiny", "dtype": "half", "max-model-len": 512},
        }
    )
    assert registry.problems == []
    tiny, pirate, calm = (registry.entries[name] for name in ("tiny", "pirate", "calm"))
    assert {(entry.model, entry.revision, entry.store_name) for entry in (tiny, pirate, calm)} == {
        ("/m", "abc", "tiny")
    }
    assert (tiny.description, pirate.description, calm.description) == ("Tiny", "Arr", "")
    assert dict(pirate.flags) == dict(tiny.flags) == {"dtype": "half", "max-model-len": 512}
    assert dict(calm.flags) == {"dtype": "half", "max-model-len": 64}
    assert (tiny.system_prompt, tiny.system_prompt_policy) == (None, "default")
    assert (calm.system_prompt, calm.system_prompt_policy) == ("Be calm.", "always")


def test_a_circle_of_bases_is_reported_once() -> None:
    found = mistakes(c={"base": "b"}, a={"base": "c"}, b={"base": "a"}, outside={"base": "c"}, sound={"model": "m"})
    assert found == [
        "models.a: base: 'c': goes in a circle, a → c → b → a: write model instead of base in one of these entries"
    ]


def test_all_mistakes_are_reported_at_once_and_a_mistake_of_a_base_only_once() -> None:
    registry = reading({"x": {"model": "m", "dtypee": 1, "port": 1}, "y": {"base": "x", "seed": "s"}, "z": 1, 5: {}})
    assert len(registry.problems) == 5
    assert registry.names == {"x", "y", "z", "5"}


def test_a_model_registry_that_is_no_dictionary_is_a_mistake() -> None:
    assert [str(problem) for problem in reading(["x"]).problems] == [
        "models: must be a dictionary of entries by name, found list"
    ]


def test_a_published_registry_loads_unchanged() -> None:
    models = load_registry(PUBLISHED.read_text(), PUBLISHED.name)
    registry = reading(models)
    assert (registry.problems, registry.warnings) == ([], [])
    assert registry.entries["chat-small"].description == "Small model for general chat"
    assert arguments(registry.entries["code"].flags, FLAGS) == [
        *(
            "--enable-auto-tool-choice",
            "--enable-expert-parallel",
            "--kv-cache-dtype",
            "fp8",
            "--max-model-len",
            "128k",
        ),
        *("--tensor-parallel-size", "2", "--tool-call-parser", "qwen3_coder"),
    ]
    assert arguments(registry.entries["reasoning"].flags, FLAGS)[2:4] == [
        "--speculative-config",
        '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}',
    ]


KEYS = st.sampled_from([*OWN_KEYS, *FLAGS.flags, "tp", "max_model_len", "compilation-config.level"]) | st.text()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner), max_leaves=5
)
NAMES = st.sampled_from(["a", "b", "c"]) | st.text()
ENTRIES = st.dictionaries(KEYS, VALUES | NAMES, max_size=5) | VALUES


@given(models=st.dictionaries(NAMES, ENTRIES, max_size=4) | VALUES, instances=st.lists(VALUES, max_size=2))
def test_any_value_is_a_registry_or_a_list_of_problems(models: Any, instances: list[Any]) -> None:
    registry = reading(models)
    assert all(str(problem) and problem.message for problem in [*registry.problems, *registry.warnings])
    if not registry.problems:
        assert set(registry.entries) == set(models)
        for entry in registry.entries.values():
            assert all(isinstance(argument, str) for argument in arguments(entry.flags, FLAGS))
    if isinstance(models, dict):
        served_models(models, instances)
    try:
        load_instances(instances, registry)
    except InputError as error:
        assert error.problems
    else:
        assert registry.problems == []


BASES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.fixed_dictionaries({"base": st.sampled_from("abcdef")}) | st.just({"model": "m"}),
)


@given(BASES)
def test_an_entry_resolves_or_its_chain_of_bases_has_a_problem(models: dict[str, Any]) -> None:
    registry = reading(models)
    assert bool(registry.problems) == (set(registry.entries) != set(models))
    assert all(models[entry.store_name] == {"model": "m"} for entry in registry.entries.values())


def test_a_variant_has_the_warm_up_prompts_of_its_base() -> None:
    registry = reading({"a": {"model": "/srv/a", "warm-up-prompts": ["Hello"]}, "b": {"base": "a"}})
    assert registry.problems == [] and registry.entries["b"].warm_up == ({"prompt": "Hello"},)
    (problem,) = reading({"a": {"model": "/srv/a", "warm-up-prompts": "Hello"}}).problems
    assert problem.key == "warm-up-prompts" and "must be a list, and not empty" in problem.message
