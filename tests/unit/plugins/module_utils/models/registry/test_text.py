# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model registry in a file: a mistake has its file, and mostly line and column."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.text import load_registry


@pytest.fixture(autouse=True)
def own_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML's own loader, whose messages the tests quote. The other unit tests use libyaml's."""
    monkeypatch.setattr(yaml, "SafeLoader", yaml.loader.SafeLoader)


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_registry(text, "models.yml")
    return str(caught.value)


def test_entries_are_below_the_key_models_or_at_the_top() -> None:
    expected = {"a": {"model": "/m", "max-model-len": 512}}
    assert load_registry("models:\n  a:\n    model: /m\n    max-model-len: 512\n", "f") == expected
    assert load_registry("a: {model: /m, max-model-len: 512}\n", "f") == expected


def test_merge_keys_are_no_duplicates() -> None:
    text = "a: &a {model: /m, seed: 1}\nb: {<<: *a, seed: 2}\n"
    assert load_registry(text, "f")["b"] == {"model": "/m", "seed": 2}


MERGED_TWICE = """
common: &common {enforce-eager: true, dtype: auto}
models:
  a:
    model: x/a
    compilation-config: &config
      <<: *common
      dtype: half
  b:
    <<: *config
    model: x/b
"""


def test_a_merge_into_a_mapping_that_is_merged_itself_is_no_duplicate() -> None:
    merged = {"enforce-eager": True, "dtype": "half"}
    assert load_registry(MERGED_TWICE, "f") == {
        "a": {"model": "x/a", "compilation-config": merged},
        "b": {"model": "x/b", **merged},
    }


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("enforce-eager: true", "dtype: half", "2:31"),
        ("<<: *common", "<<: *common\n      dtype: half", "9:7"),
        ("<<: *config", "<<: *config\n    model: x/b", "12:5"),
    ],
)
def test_a_key_that_is_there_twice_is_an_error_in_spite_of_merge_keys(old: str, new: str, place: str) -> None:
    assert refused(MERGED_TWICE.replace(old, new)).startswith(f"models.yml:{place}: is not valid YAML: the key ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  model: /m\n   dtype: half\n", "models.yml:3:9: is not valid YAML: mapping values are not allowed here"),
        ("a:\n\tmodel: /m\n", "models.yml:2:1: is not valid YAML: found character '\\t'"),
        (
            "a:\n  seed: 1\n  dtype: half\n  seed: 2\n",
            "models.yml:4:3: is not valid YAML: the key 'seed' is already in line 2",
        ),
        ("a: {}\na: {}\n", "models.yml:2:1: is not valid YAML: the key 'a' is already in line 1"),
        (
            "a:\n  model: !vault x\n",
            "models.yml:2:10: is not valid YAML: could not determine a constructor for the tag",
        ),
        ("a:\n  model: /m\x07\n", "models.yml:2:12: contains the character"),
        ("a: 2026-13-01\n", "models.yml:1:4: is not valid YAML: this value is not valid (month must be in 1..12"),
        ("a: 1\n---\nb: 2\n", "models.yml:2:1: is not valid YAML"),
        ("? [a]\n: 1\n", "models.yml:1:3: is not valid YAML: found unhashable key"),
        ("- a\n", "models.yml: must contain a dictionary of models by name, found list"),
        ("", "models.yml: must contain a dictionary of models by name, found nothing"),
        ("models: 5\n", "models.yml: must contain a dictionary of models by name, found int"),
        pytest.param("[" * 1000, "models.yml: is nested too deeply", id="1000 brackets"),
    ],
)
def test_a_text_that_does_not_load_is_an_error_with_its_place(text: str, expected: str) -> None:
    assert expected in refused(text)


@given(st.text(alphabet=st.sampled_from("ab:-?!&*{}[]<>|'\"#%@`,=~ \n\t01.x") | st.characters()))
@example("!!int ''")
@example("!!timestamp x")
@example("&a [*a]")
@example("0b_: 1")
def test_any_text_loads_or_is_refused(text: str) -> None:
    try:
        assert isinstance(load_registry(text, "models.yml"), dict)
    except InputError as error:
        assert str(error).startswith("models.yml")
