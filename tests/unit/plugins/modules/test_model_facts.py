# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module model_facts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.modules import model_facts


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, model_facts)


def test_tells_of_whole_and_broken_models(run: Any, tmp_path: Path, write_model: Callable[..., Path]) -> None:
    whole = write_model(tmp_path / "whole")
    result = run(directories={"whole": str(whole), "gone": str(tmp_path / "gone")}, check=True)
    found = result["ansible_facts"]["model_facts"]
    assert not result["changed"]
    assert found["whole"]["problems"] == []
    assert found["whole"]["weights"]["bytes"] == 8000
    assert found["whole"]["architectures"] == ["LlamaForCausalLM"]
    assert found["gone"]["problems"] == [{"file": "", "message": "is not there, or is no directory"}]
    assert set(found["gone"]) == set(found["whole"])


def test_refuses_what_is_no_path(run: Any) -> None:
    assert run(directories={"a": ["/x"], "b": "/y"})["msg"] == "directories: must be paths: a: ['/x']"


def keys(value: Any, documented: dict[str, Any]) -> None:
    """Every key of a fact is documented, and no other."""
    assert set(value) == set(documented)
    for key, entry in documented.items():
        inner = entry.get("contains")
        if inner and value[key] is not None:
            for item in value[key] if isinstance(value[key], list) else [value[key]]:
                keys(item, inner)


def test_documents_every_key(model: Callable[..., ModelFacts], tmp_path: Path) -> None:
    returned = yaml.safe_load(model_facts.RETURN)["ansible_facts"]["contains"]["model_facts"]["contains"]
    for name in ("deepseek-v3", "llama-3.1-70b", "gpt-oss-20b"):
        keys(model(name).to_dict(), returned)
