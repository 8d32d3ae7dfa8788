# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An entry's flags: what the engine would refuse is refused before, and what it takes is rendered as it wants it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import (
    OWNED_FLAGS,
    arguments,
    check,
)

FLAGS = choose("0.32.0")
NEWER = choose("0.33.0")
OWN = ("model", "description", "system-prompt")


def finding(flags: dict[str, Any], known: catalogue.Catalogue = FLAGS) -> Findings:
    found = Findings()
    check("models.x", flags, known, OWN, found)
    return found


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"dtype": "bfloat16"}, ["--dtype", "bfloat16"]),
        ({"enforce-eager": True}, ["--enforce-eager"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        (
            {"max-model-len": 512, "gpu-memory-utilization": 0.85},
            ["--gpu-memory-utilization", "0.85", "--max-model-len", "512"],
        ),
        ({"max-model-len": "32k"}, ["--max-model-len", "32k"]),
        ({"max-model-len": "auto"}, ["--max-model-len", "auto"]),
        ({"max-model-len": -1}, ["--max-model-len=-1"]),
        ({"tensor-parallel-size": "2"}, ["--tensor-parallel-size", "2"]),
        ({"hf-overrides": {"b": 1, "a": "é"}}, ["--hf-overrides", '{"a":"é","b":1}']),
        ({"hf-overrides": "some.function"}, ["--hf-overrides", "some.function"]),
        ({"limit-mm-per-prompt": '{"image": 4}'}, ["--limit-mm-per-prompt", '{"image": 4}']),
        ({"kv-transfer-config": '{"cpu_bytes_to_use": 80m}'}, ["--kv-transfer-config", '{"cpu_bytes_to_use": 80m}']),
        ({"lora-modules": ["a=/x", {"name": "b"}]}, ["--lora-modules", "a=/x", '{"name":"b"}']),
        ({"lora-modules": "a=/x"}, ["--lora-modules", "a=/x"]),
        ({"cudagraph-capture-sizes": [1, 2, "4"]}, ["--cudagraph-capture-sizes", "1", "2", "4"]),
        # One JSON list, not one value behind the other.
        ({"allowed-origins": ["*"]}, ["--allowed-origins", '["*"]']),
        # One flag for each.
        ({"middleware": ["a.B", "c.D"]}, ["--middleware", "a.B", "--middleware", "c.D"]),
        # Behind a blank it would be the next flag.
        ({"chat-template": "-x"}, ["--chat-template=-x"]),
        ({"max-lora-rank": 16}, ["--max-lora-rank", "16"]),
        ({"moe-backend": "deep-gemm"}, ["--moe-backend", "deep-gemm"]),
        ({"max-cpu-loras": "None"}, ["--max-cpu-loras", "None"]),
    ],
)
def test_what_the_engine_takes(flags: dict[str, Any], expected: list[str]) -> None:
    found = finding(flags)
    assert (found.problems, found.warnings) == ([], [])
    assert arguments(flags, FLAGS) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # Names
        ("dtypee", "half", "neither a key of the registry nor a flag of vLLM 0.32.0: did you mean 'dtype'?"),
        ("quite-new", 1, "nor a flag of vLLM 0.32.0: `vllm serve --help=all` lists the flags"),
        ("max_model_len", 5, "write 'max-model-len'"),
        ("Max-Model-Len", 5, "write 'max-model-len'"),
        ("--dtype", "half", "write 'dtype'"),
        ("max_modl_len", 5, "did you mean 'max-model-len'?"),
        ("two words", 5, "`vllm serve --help=all` lists the flags"),
        ("", 5, "`vllm serve --help=all` lists the flags"),
        ("tp", 2, "is another name of a flag: write 'tensor-parallel-size'"),
        ("device-memory-utilization", 0.5, "write 'gpu-memory-utilization'"),
        ("no-enable-prefix-caching", True, "is the opposite of a flag: write enable-prefix-caching: false"),
        ("no-enable-prefix-caching", False, "write enable-prefix-caching: true"),
        ("compilation-config.level", 3, "write compilation-config as a dictionary, with level in it"),
        # Whose they are
        ("port", 1, "is set by the role: use the instance's port instead"),
        ("hf-token", "k", "use HF_TOKEN in vllm_secret_environment instead"),
        ("api_key", "k", "use vllm_api_key instead"),
        ("no-enable-ssl-refresh", True, "use TLS at the gateway"),
        ("nnodes", 2, "an instance runs on one node"),
        ("dpn", 2, "an instance runs on one node"),
        # Switches
        ("enforce-eager", "yes", "is a switch: must be true or false, without quotes"),
        ("enforce-eager", 1, "is a switch"),
        ("disable-log-stats", False, "the engine has no --no-disable-log-stats: remove the key, it is off by default"),
        ("seed", True, "is no switch: must be a whole number"),
        ("reasoning-parser", False, "is no switch: must be a text; put words such as on, off, yes and no in quotes"),
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
        ("lora-modules", ["a=/x", None], "holds None: must be a text or a number"),
        ("lora-modules", ["--trust-remote-code"], "begins with a dash"),
        ("chat-template", "a\0b", "holds a control character"),
        ("chat-template", "\ud800", "half of a character"),
    ],
)
def test_what_it_does_not_take(name: str, value: Any, expected: str) -> None:
    (problem,) = finding({name: value}).problems
    assert str(problem).startswith(f"models.x: {name}" if name else "models.x:")
    assert expected in str(problem)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            {"log-config-file": "/x"},
            "is deprecated in vLLM 0.32.0, to be removed in 0.33.0: use logging-config.pylogging",
        ),
        ({"disable-cascade-attn": True}, "is deprecated in vLLM 0.32.0, to be removed in 0.33.0: remove it"),
        ({"tool-call-parser": "qwen3_codr"}, "did you mean 'qwen3_coder'?"),
    ],
)
def test_what_works_but_is_warned_of(flags: dict[str, Any], expected: str) -> None:
    found = finding(flags)
    assert found.problems == []
    assert expected in str(found.warnings[0])


def test_a_secret_that_stands_in_the_wrong_place_is_not_shown() -> None:
    for flags in ({"api-key": "sk-1234"}, {"hf_token": "sk-1234"}):
        (problem,) = finding(flags).problems
        assert "sk-1234" not in str(problem)


def test_the_opposite_of_a_switch_in_a_version_that_names_it() -> None:
    (problem,) = finding({"disable-prefix-caching": True}, NEWER).problems
    assert "write enable-prefix-caching: false" in str(problem)
    assert arguments({"enable-prefix-caching": False}, NEWER) == ["--no-enable-prefix-caching"]


@pytest.mark.parametrize(
    ("wanted", "version", "exact"),
    [
        ("", "0.33.0", True),
        ("0.32.0", "0.32.0", True),
        ("v0.32.0+cpu", "0.32.0", True),
        ("0.32.0rc1", "0.32.0", False),
        ("0.32.1", "0.32.0", False),
        ("0.4.0", "0.32.0", False),
        ("1.0", "0.33.0", False),
        ("nightly", "0.33.0", False),
    ],
)
def test_the_catalogue_of_a_version_or_the_nearest(wanted: str, version: str, exact: bool) -> None:
    chosen = choose(wanted)
    assert (chosen.version, chosen.exact) == (version, exact)
    assert (chosen.note == "") is exact
    assert exact or (wanted in chosen.note and version in chosen.note)


def test_what_another_version_may_know_is_not_refused() -> None:
    other = choose("0.99.0")
    flags = {"quite-new": False, "quite-newer": ["a", 1], "dtype": "float6"}
    found = finding(flags, other)
    assert found.problems == []
    assert len(found.warnings) == 3
    assert arguments(flags, other) == ["--dtype", "float6", "--no-quite-new", "--quite-newer", "a", "1"]
    # What no version takes is refused all the same.
    assert [problem.key for problem in finding({"port": 1, "quite_new": 1, "quite-new": None}, other).problems] == [
        *("port", "quite_new", "quite-new")
    ]


def test_a_guessed_version_is_named_where_it_may_be_the_reason() -> None:
    (problem,) = finding({"quite-new": 1}, choose("")).problems
    assert "the image's version is not known, 0.33.0 is assumed: set engine_version" in str(problem)


@pytest.mark.parametrize("known", [FLAGS, NEWER], ids=lambda known: known.version)
def test_every_catalogue_is_whole(known: catalogue.Catalogue) -> None:
    assert set(OWNED_FLAGS) <= set(known.flags)
    assert len(known.flags) > 300
    assert catalogue.ANY not in {flag.type for flag in known.flags.values()}
    assert not set(known.aliases) & set(known.flags)
    assert not set(known.inverse) & set(known.flags)
    assert known.flag("gpu-memory-utilization") == catalogue.Flag(
        "gpu-memory-utilization", catalogue.NUMBER, aliases=("device-memory-utilization",)
    )


NAMES = st.sampled_from(sorted(FLAGS.flags)) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["auto", "None", "1k", "{}"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_not_refused_renders_to_flags_and_values(flags: dict[str, Any]) -> None:
    if finding(flags).problems:
        return
    argv = arguments(flags, FLAGS)
    assert argv == arguments(json.loads(json.dumps(flags)), FLAGS)
    options = {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
    assert options <= {f"--{name}" for name in flags} | {f"--no-{name}" for name in flags}
    assert all("\0" not in argument and argument.encode() is not None for argument in argv)
