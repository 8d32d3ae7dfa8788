# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library reads the same facts from config.json as the engine, whose facts tests/tools/oracle has recorded."""

from __future__ import annotations

import json
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[6] / "tests/tools"
ANSWERS = [json.loads(line) for line in Path(__file__).with_name("engine_answers.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def oracle() -> Any:
    """The tool `oracle`. An import does not find its file, whose name has no extension."""
    sys.path.insert(0, str(TOOLS))
    loader = SourceFileLoader("oracle_tool", str(TOOLS / "oracle"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_library_reads_what_the_engine_reads(oracle: Any) -> None:
    """All answers in one test: a thousand tests would take longer than their comparisons."""
    found = {answer["name"]: oracle.differences(answer) for answer in ANSWERS}
    assert {name: differences for name, differences in found.items() if differences} == {}


def test_the_recorded_answers_have_many_types_of_models(oracle: Any) -> None:
    assert len({oracle.kind(answer) for answer in ANSWERS}) >= oracle.LEAST_TYPES


def test_a_difference_between_library_and_engine_is_found(oracle: Any) -> None:
    answer = ANSWERS[0]
    wrong = {**answer, "engine": {**answer["engine"], "layers": 7}}
    assert oracle.differences(wrong) == {"layers": (answer["engine"]["layers"], 7)}
