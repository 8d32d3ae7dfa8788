# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine's own configuration classes said of a type each, recorded by tests/tools/oracle."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ORACLE = Path(__file__).parents[6] / "tests/tools/oracle"
ANSWERS = [json.loads(line) for line in Path(__file__).with_name("engine_answers.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def oracle() -> Any:
    """The tool, which has no extension that an import would know it by."""
    loader = SourceFileLoader("oracle_tool", str(ORACLE))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["name"] for answer in ANSWERS])
def test_the_library_reads_what_the_engine_reads(answer: dict[str, Any], oracle: Any) -> None:
    assert oracle.differences(answer) == {}


def test_the_sample_has_many_types(oracle: Any) -> None:
    assert len({oracle.kind(answer) for answer in ANSWERS}) >= oracle.LEAST_TYPES


def test_a_difference_is_found(oracle: Any) -> None:
    answer = ANSWERS[0]
    wrong = {**answer, "engine": {**answer["engine"], "layers": 7}}
    assert oracle.differences(wrong) == {"layers": (answer["engine"]["layers"], 7)}
