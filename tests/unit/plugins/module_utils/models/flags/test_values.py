# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A flag's value: a value that the engine would refuse is a mistake, and any other value becomes arguments."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import values
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import Flag, choose

FLAGS = choose("0.32.0")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("dtype", "bfloat16", ["--dtype", "bfloat16"]),
        ("enforce-eager", True, ["--enforce-eager"]),
        ("enable-prefix-caching", False, ["--no-enable-prefix-caching"]),
        ("max-model-len", "32k", ["--max-model-len", "32k"]),
        ("max-model-len", "auto", ["--max-model-len", "auto"]),
        ("max-model-len", -1, ["--max-model-len=-1"]),
        ("tensor-parallel-size", "2", ["--tensor-parallel-size", "2"]),
        ("hf-overrides", {"b": 1, "a": "é"}, ["--hf-overrides", '{"a":"é","b":1}']),
        ("hf-overrides", "some.function", ["--hf-overrides", "some.function"]),
        ("limit-mm-per-prompt", '{"image": 4}', ["--limit-mm-per-prompt", '{"image": 4}']),
        ("kv-transfer-config", '{"cpu_bytes_to_use": 80m}', ["--kv-transfer-config", '{"cpu_bytes_to_use": 80m}']),
        ("lora-modules", ["a=/x", {"name": "b"}], ["--lora-modules", "a=/x", '{"name":"b"}']),
        ("lora-modules", "a=/x", ["--lora-modules", "a=/x"]),
        ("cudagraph-capture-sizes", [1, 2, "4"], ["--cudagraph-capture-sizes", "1", "2", "4"]),
        # This flag takes one JSON list, not separate values.
        ("allowed-origins", ["*"], ["--allowed-origins", '["*"]']),
        # The flag is repeated for each value.
        ("middleware", ["a.B", "c.D"], ["--middleware", "a.B", "--middleware", "c.D"]),
        # As a separate argument, the value would be the next flag.
        ("chat-template", "-x", ["--chat-template=-x"]),
        ("max-lora-rank", 16, ["--max-lora-rank", "16"]),
        ("moe-backend", "deep-gemm", ["--moe-backend", "deep-gemm"]),
        ("max-cpu-loras", "None", ["--max-cpu-loras", "None"]),
    ],
)
def test_values_that_the_engine_accepts_become_arguments(name: str, value: Any, expected: list[str]) -> None:
    flag = FLAGS.flags[name]
    assert (values.mistake(flag, value), values.unlisted(flag, value), values.unfamiliar(flag, value)) == ("", "", "")
    assert values.arguments(flag, value) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # Switches
        ("enforce-eager", "yes", "is a switch: must be true or false, without quotes"),
        ("enforce-eager", 1, "is a switch"),
        ("disable-log-stats", False, "the engine has no --no-disable-log-stats: remove the key, off is the default"),
        ("seed", True, "is not a switch: must be a whole number"),
        ("reasoning-parser", False, "is not a switch: must be a text; put words such as on, off, yes and no in quotes"),
        # Values
        ("dtype", None, "has no value"),
        ("dtype", "fp16", "must be one of auto, bfloat16, float, float16, float32, half; did you mean 'float16'?"),
        ("dtype", ["half"], "takes one value, not a list"),
        ("dtype", {"a": 1}, "must be a text, not a dictionary"),
        ("max-lora-rank", 7, "must be one of 1, 8, 16, 32"),
        ("collect-detailed-traces", ["all", "modell"], "did you mean 'model'?"),
        ("moe-backend", "deep gemm", "must be one of"),
        ("max-num-seqs", 1.5, "must be a whole number"),
        ("max-num-seqs", "many", "must be a whole number"),
        ("max-num-seqs", "", "must be a whole number"),
        ("gpu-memory-utilization", "90%", "must be a number"),
        ("max-model-len", "32kb", "or one such as 32k (thousands) or 32K (times 1024), or auto"),
        ("max-model-len", "1.5K", "must be a whole number"),
        ("max-model-len", {"a": 1}, "not a dictionary"),
        ("limit-mm-per-prompt", '{"image": 4', "must be a dictionary or list, or JSON in quotes"),
        ("limit-mm-per-prompt", 4, "must be a dictionary or list, or JSON in quotes"),
        ("hf-overrides", [1], "takes one value, not a list"),
        ("hf-overrides", {"a": {1, 2}}, "cannot be written as JSON"),
        ("hf-overrides", {1: 1, "a": 1}, "cannot be written as JSON"),
        ("lora-modules", [], "is an empty list"),
        ("lora-modules", ["a=/x", None], "contains None: must be a text or a number"),
        ("lora-modules", ["--trust-remote-code"], "begins with a dash"),
        ("chat-template", "a\0b", "contains a control character"),
        ("chat-template", "\ud800", "half of a character"),
    ],
)
def test_values_that_the_engine_refuses_are_mistakes(name: str, value: Any, expected: str) -> None:
    flag = FLAGS.flags[name]
    assert expected in (values.mistake(flag, value) or values.unlisted(flag, value))


def test_a_value_that_a_plugin_may_know_is_no_mistake() -> None:
    flag = FLAGS.flags["tool-call-parser"]
    assert (values.mistake(flag, "qwen3_codr"), values.unlisted(flag, "qwen3_codr")) == ("", "")
    assert "is not one of the engine's own: " in values.unfamiliar(flag, "qwen3_codr")
    assert values.unfamiliar(flag, "qwen3_codr").endswith("did you mean 'qwen3_coder'?")
    assert values.unfamiliar(flag, "qwen3_coder") == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, ["--x"]),
        (False, ["--no-x"]),
        (["a", 1], ["--x", "a", "1"]),
        ([{"a": 1}], ["--x", '{"a":1}']),
        ("-1", ["--x=-1"]),
    ],
)
def test_a_flag_that_no_catalogue_knows_takes_any_value(value: Any, expected: list[str]) -> None:
    flag = Flag("x")
    assert values.mistake(flag, value) == ""
    assert values.arguments(flag, value) == expected


def test_no_flag_takes_an_empty_value_or_a_second_flag() -> None:
    assert values.mistake(Flag("x"), None).startswith("has no value")
    assert "begins with a dash" in values.mistake(Flag("x"), ["a", "--y"])
    # vLLM's parser reads -0.5 as the key 5 of a flag -0.
    assert "begins with a dash" in values.mistake(Flag("x"), [-0.5]) and not values.mistake(Flag("x"), [-1])
