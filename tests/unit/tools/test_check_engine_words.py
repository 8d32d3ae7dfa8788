# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A word of an engine outside its adapter is found, and a word that only looks like one is not."""

from __future__ import annotations

import check_engine_words
import pytest

FILE = "plugins/module_utils/node/new.py"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('NAME = "vllm:num_requests_running"', "metric"),
        ('KEY = "VLLM_API_KEY"', "variable"),
        ('PATH = "/v1/completions"', "path"),
        ('argv = ["--served-model-name", name]', "command"),
        ("the flags of `vllm serve`", "command"),
        ("from vllm.engine import arg_utils", "package"),
        ('message = f"no image of vLLM has code for {name}"', "title"),
    ],
)
def test_a_word_of_an_engine_is_refused(line: str, kind: str) -> None:
    (found,) = check_engine_words.problems({FILE: f"\n{line}\n"}, {})
    assert found.startswith(f"{FILE}:2: ") and f"is an engine's {kind}: ask the engine's adapter" in found


@pytest.mark.parametrize(
    "line",
    [
        'UNIT = f"vllm@{name}.service"',
        "vllm_api_key: ''",
        "Source: vLLM 0.32.0, vllm/v1/core/kv_cache_utils.py",
        'prometheus.data("/api/v1/rules")',
        '"/redfish/v1/Systems"',
        "image: registry.example.com/vllm@sha256:0",
        '"""Sizes. Source: vLLM 0.32.0."""',
        'DOCUMENTATION = r"""The flags of vLLM."""',
        "SIZE = 1  # of vLLM",
    ],
)
def test_words_that_are_not_of_an_engine_are_accepted(line: str) -> None:
    assert check_engine_words.problems({FILE: line}, {}) == []


@pytest.mark.parametrize("home", check_engine_words.HOMES)
def test_an_engine_adapter_may_have_words_of_an_engine(home: str) -> None:
    assert check_engine_words.problems({f"{home}vllm.py": 'KEY = "VLLM_API_KEY"'}, {}) == []


def test_an_exception_allows_its_kinds_alone_and_must_be_needed() -> None:
    exceptions = {FILE: (frozenset({"metric", "path"}), "a reason")}
    text = '"vllm:num_requests_running" "VLLM_API_KEY"'
    found = check_engine_words.problems({FILE: text}, exceptions)
    assert len(found) == 2
    assert "VLLM_API_KEY is an engine's variable" in found[0]
    assert found[1].startswith(f"{FILE}: has no engine's path any more: remove the exception")


def test_every_exception_has_a_reason() -> None:
    assert all(kinds and reason for kinds, reason in check_engine_words.EXCEPTIONS.values())
