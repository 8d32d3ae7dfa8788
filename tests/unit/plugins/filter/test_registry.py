# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that read a model registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.filter.registry import FilterModule
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts

FILTERS = FilterModule().filters()


def test_the_entries_of_a_file_are_read() -> None:
    assert FILTERS["model_registry"]("models: {a: {model: /srv/a}}", "models.yml") == {"a": {"model": "/srv/a"}}


def test_a_variant_has_the_golden_prompts_of_its_base() -> None:
    golden = [{"prompt": "2 + 2 =", "expect": "4"}]
    models = {"a": {"model": "/srv/a", "golden-prompts": golden}, "b": {"base": "a"}, "c": {"model": "/srv/c"}}
    assert FILTERS["golden_prompts"](models) == {"a": golden, "b": golden}


def test_the_gpus_that_models_need_are_listed(model: Callable[..., ModelFacts]) -> None:
    facts: dict[str, Any] = {"a": model("llama-3-8b").to_dict()}
    assert "1 x L4" in FILTERS["model_needs"]({"a": {"model": "/srv/a"}}, facts)
    assert "fits      no" in FILTERS["model_needs"]({"a": {"model": "/srv/a"}}, facts, "1xT4")


def test_all_mistakes_of_a_registry_are_in_one_list(model: Callable[..., ModelFacts]) -> None:
    models: dict[Any, Any] = {
        "a": {"model": "/srv/a", "dtypee": "half"},
        "cloud": {"model": "s3://bucket/name"},
        "home": {"model": "~/models/name"},
        "branch": {"model": "org/name", "revision": "main"},
        "legal": {"base": "a", "adapter": "./legal"},
        "short": {"base": "a"},
        5: {"model": "/srv/five"},
        "none": None,
    }
    text = FILTERS["model_needs"](models, {"a": model("llama-3-8b").to_dict()}, "", 1, {"branch": "no answer"})
    mistakes = text.partition("to correct:")[2].splitlines()[1:]
    for words in (
        "models.a: dtypee: 'half': is neither a key of the model registry nor a flag",
        "models.cloud: model: 's3://bucket/name': must be controller:/absolute/path",
        "models.home: model: '~/models/name': must be controller:/absolute/path",
        "models.branch: model: 'org/name': needs the key revision, too: the commit's 40 digits",
        "models.legal: model: './legal': must be controller:/absolute/path",
        "models.5: is a name that YAML does not read as a text",
        "models.none: must be a dictionary of keys",
    ):
        assert len([line for line in mistakes if words in line]) == 1, (words, mistakes)
    assert len(mistakes) == 7
    assert "unknown   the model: no answer" in text


def test_files_of_the_controller_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("x")
    text = f"controller:{tmp_path}/t.jinja"
    models = {"a": {"model": "controller:/srv/a", "chat-template": text}}
    found = FILTERS["controller_files"](models, [{"name": "main", "model": "a"}])
    assert found[text]["source"] == f"{tmp_path}/t.jinja"
    assert FILTERS["controller_files"](models, []) == {}
