# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's last answers to each gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gateway_answers
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gateway_answers import (
    FORGET_SECONDS,
    GatewayAnswer,
    GatewayAnswers,
)


def written(paths: Paths, answers: GatewayAnswers) -> list[GatewayAnswer]:
    """The answers that a reader of the file finds."""
    files.write(paths.gateway_answers("main"), files.to_json(answers.to_json()))
    return gateway_answers.read(paths, "main")


def test_equal_answers_in_a_row_are_counted(tmp_path: Path) -> None:
    answers = GatewayAnswers()
    changes = [answers.record("gw1", text, float(second)) for second, text in enumerate(["up ready", "drain", "drain"])]
    assert changes == [True, True, False]
    answers.record("gw2", "down #hung: no token", 2.5)
    assert written(Paths(tmp_path), answers) == [
        GatewayAnswer("gw1", "drain", 2, 2.0),
        GatewayAnswer("gw2", "down", 1, 2.5),
    ]


def test_another_answer_begins_a_new_count() -> None:
    answers = GatewayAnswers()
    for text in ("drain", "drain", "up ready", "drain"):
        answers.record("gw1", text, 1.0)
    assert answers.to_json()["gateways"][0]["times"] == 1


def test_a_gateway_that_no_longer_asks_is_dropped() -> None:
    answers = GatewayAnswers()
    answers.record("gone", "up ready", 0.0)
    answers.record("gw1", "up ready", FORGET_SECONDS)
    assert [each["gateway"] for each in answers.to_json()["gateways"]] == ["gone", "gw1"]
    answers.record("gw1", "up ready", FORGET_SECONDS + 1)
    assert [each["gateway"] for each in answers.to_json()["gateways"]] == ["gw1"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", json.dumps({"schema": 0, "gateways": []}), json.dumps({"schema": 1, "gateways": [{}]})),
        '{"schema": 1, "gateways": [{"gateway": "gw1", "word": "up", "times": Infinity, "asked": 1}]}',
    ],
)
def test_a_missing_or_damaged_file_has_no_answers(tmp_path: Path, text: str) -> None:
    paths = Paths(tmp_path)
    assert gateway_answers.read(paths, "main") == []
    files.write(paths.gateway_answers("main"), text)
    assert gateway_answers.read(paths, "main") == []
