# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An entry's flags: wrong names and values are found, and flags without a mistake are rendered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import Catalogue, choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import (
    OWNED_FLAGS,
    arguments,
    check,
)

FLAGS = choose("0.32.0")
NEWER = choose("0.33.0")
OWN = ("model", "description", "system-prompt")


def finding(flags: dict[str, Any], known: Catalogue = FLAGS) -> Findings:
    found = Findings()
    check("models.x", flags, known, OWN, found)
    return found


def test_arguments_are_sorted_by_flag() -> None:
    flags = {"max-model-len": 512, "gpu-memory-utilization": 0.85, "enable-prefix-caching": False}
    found = finding(flags)
    assert (found.problems, found.warnings) == ([], [])
    expected = ["--no-enable-prefix-caching", "--gpu-memory-utilization", "0.85", "--max-model-len", "512"]
    assert arguments(flags, FLAGS) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # Names
        ("dtypee", "half", "neither a key of the model registry nor a flag of vLLM 0.32.0: did you mean 'dtype'?"),
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
        # Keys that belong elsewhere
        ("rope-scaling", {"factor": 4}, "write it as hf-overrides: {rope_parameters: …}, which changes"),
        ("rope_scaling", {"factor": 4}, "write it as hf-overrides: {rope_parameters: …}, which changes"),
        ("gpus", 2, "nor a flag of vLLM 0.32.0: set it in the instance, an item of instances"),
        ("image", "x", "set image in the instance, an item of instances; or engine_image"),
        ("env", {}, "set environment or secret_environment in the instance"),
        ("args", ["--x"], "write each flag as a key of the entry itself, without its dashes"),
        ("quantization", "fp-8", "did you mean 'fp8'?"),
        ("quantization", "bits", "must be one of auto_awq, auto_gptq, awq"),
        # Flags that the role sets, or that have another place
        ("port", 1, "is not allowed here: set port of the instance"),
        ("hf-token", "k", "is not allowed here: set HF_TOKEN in vllm_secret_environment"),
        ("api_key", "k", "is not allowed here: set vllm_api_key"),
        ("no-enable-ssl-refresh", True, "configure TLS at the gateway"),
        ("nnodes", 2, "set nodes, gang_port and rendezvous_port of the instance"),
        ("n", 2, "set nodes, gang_port and rendezvous_port of the instance"),
        ("node-rank", 1, "they decide how engines on several nodes connect"),
        ("master-addr", "10.0.0.1", "set nodes, gang_port"),
        ("master_port", 29501, "set nodes, gang_port"),
        ("headless", True, "set nodes, gang_port"),
        ("dpn", 2, "For each further node, declare an instance of the same name: the gateway balances"),
        ("data-parallel-rpc-port", 29550, "write data-parallel-size for ranks on one node"),
        # Values: of the wrong form, and not among the choices
        ("dtype", None, "has no value"),
        ("dtype", "fp16", "must be one of auto, bfloat16, float, float16, float32, half; did you mean 'float16'?"),
    ],
)
def test_each_wrong_flag_is_a_problem_with_entry_and_key(name: str, value: Any, expected: str) -> None:
    (problem,) = finding({name: value}).problems
    assert str(problem).startswith(f"models.x: {name}" if name else "models.x:")
    assert expected in str(problem)


@pytest.mark.parametrize("name", ["token", "hf-access-token", "hf_api_key", "Password", "registry-credentials"])
@pytest.mark.parametrize("version", ["0.33.0", "", "0.99.0"])
def test_no_message_shows_a_value_that_may_be_a_secret(name: str, version: str) -> None:
    found = finding({name: "s3cret-value"}, choose(version))
    assert [*found.problems, *found.warnings]
    assert "s3cret" not in f"{[*map(str, found.problems), *map(str, found.warnings)]}"


def test_flags_for_data_parallel_ranks_on_one_node_are_accepted() -> None:
    """Copied entries have these flags and data-parallel-size: on one node, the flags place no rank elsewhere."""
    flags = {"data-parallel-size": 8, "data-parallel-size-local": 8, "data-parallel-backend": "mp"}
    assert finding(flags).problems == []


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
def test_deprecated_flags_and_unfamiliar_values_are_warnings(flags: dict[str, Any], expected: str) -> None:
    found = finding(flags)
    assert found.problems == []
    assert expected in str(found.warnings[0])


@pytest.mark.parametrize("backend", ["mp", "ray", "uni", "external_launcher"])
def test_an_engine_on_one_node_may_choose_how_to_start_its_workers(backend: str) -> None:
    found = finding({"distributed-executor-backend": backend})
    assert (found.problems, found.warnings) == ([], [])


def test_no_problem_shows_a_secret_in_a_wrong_key() -> None:
    for flags in (
        {"api-key": "sk-1234"},
        {"hf_token": "sk-1234"},
        {"env": {"HF_TOKEN": "sk-1234"}},
        {"secret_environment": {"HF_TOKEN": "sk-1234"}},
        {"extra_args": "--api-key sk-1234"},
        {"args": ["--api-key", "sk-1234"]},
    ):
        (problem,) = finding(flags).problems
        assert "sk-1234" not in str(problem)


def test_the_opposite_of_a_switch_is_a_problem_that_names_the_switch() -> None:
    (problem,) = finding({"disable-prefix-caching": True}, NEWER).problems
    assert "write enable-prefix-caching: false" in str(problem)
    assert arguments({"enable-prefix-caching": False}, NEWER) == ["--no-enable-prefix-caching"]


def test_flags_and_values_that_another_version_may_have_are_warnings() -> None:
    other = choose("0.99.0")
    flags = {"quite-new": False, "quite-newer": ["a", 1], "dtype": "float6"}
    found = finding(flags, other)
    assert found.problems == []
    assert len(found.warnings) == 3
    assert arguments(flags, other) == ["--dtype", "float6", "--no-quite-new", "--quite-newer", "a", "1"]
    # A mistake in every version is refused all the same.
    assert [problem.key for problem in finding({"port": 1, "quite_new": 1, "quite-new": None}, other).problems] == [
        *("port", "quite_new", "quite-new")
    ]


def test_a_problem_names_the_guessed_version_if_another_version_may_have_the_flag() -> None:
    assumed = "a flag of vLLM 0.33.0 (the version of the image is unknown, and 0.33.0 is assumed: set engine_version"
    for key, hint in (
        ("quite-new", "`vllm serve --help=all` lists"),
        ("max-model-length", "did you mean 'max-model-len'"),
    ):
        (problem,) = finding({key: 1}, choose("")).problems
        assert assumed in str(problem) and f"for another one): {hint}" in str(problem)
    (problem,) = finding({"gpus": 1}, choose("")).problems
    assert "assumed" not in str(problem), "wrong in every version"


@pytest.mark.parametrize("known", [FLAGS, NEWER], ids=lambda known: known.version)
def test_every_flag_that_only_the_role_sets_is_a_flag_of_the_engine(known: Catalogue) -> None:
    assert set(OWNED_FLAGS) <= set(known.flags)


NAMES = st.sampled_from(sorted(FLAGS.flags)) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["auto", "None", "1k", "{}"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_flags_without_a_mistake_render_to_arguments(flags: dict[str, Any]) -> None:
    if finding(flags).problems:
        return
    argv = arguments(flags, FLAGS)
    assert argv == arguments(json.loads(json.dumps(flags)), FLAGS)
    options = {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
    assert options <= {f"--{name}" for name in flags} | {f"--no-{name}" for name in flags}
    assert all("\0" not in argument and argument.encode() is not None for argument in argv)
