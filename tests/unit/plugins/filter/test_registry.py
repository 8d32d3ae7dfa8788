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


def test_reads_the_entries_of_a_file() -> None:
    assert FILTERS["model_registry"]("models: {a: {model: /srv/a}}", "models.yml") == {"a": {"model": "/srv/a"}}


def test_finds_golden_prompts_of_bases_too() -> None:
    golden = [{"prompt": "2 + 2 =", "expect": "4"}]
    models = {"a": {"model": "/srv/a", "golden-prompts": golden}, "b": {"base": "a"}, "c": {"model": "/srv/c"}}
    assert FILTERS["golden_prompts"](models) == {"a": golden, "b": golden}


def test_says_what_models_need(model: Callable[..., ModelFacts]) -> None:
    facts: dict[str, Any] = {"a": model("llama-3-8b").to_dict()}
    assert "1 x L4" in FILTERS["model_needs"]({"a": {"model": "/srv/a"}}, facts)
    assert "fits      no" in FILTERS["model_needs"]({"a": {"model": "/srv/a"}}, facts, "1xT4")


def test_reads_files_of_the_controller(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("x")
    text = f"controller:{tmp_path}/t.jinja"
    models = {"a": {"model": "controller:/srv/a", "chat-template": text}}
    found = FILTERS["controller_files"](models, [{"name": "main", "model": "a"}])
    assert found[text]["source"] == f"{tmp_path}/t.jinja"
    assert FILTERS["controller_files"](models, []) == {}
