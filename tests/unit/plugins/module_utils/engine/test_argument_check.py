# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that asks an engine's image about arguments, and the reason of a refusal."""

from __future__ import annotations

import ast

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import argument_check
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm import ADAPTER
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

PYDANTIC = """\
Traceback (most recent call last):
  File "<string>", line 20, in <module>
pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, User-specified max_model_len (51200) is greater than the derived one. [type=value_error, input_value=A()]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""
PARSER = """\
usage: vllm serve [model_tag] [options]
            [--dtype {auto,half}]
vllm: error: argument --dtype: invalid choice: 'x' (choose from 'auto', 'half')
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "x.py", line 3, in check
KeyError: 'invalid tool call parser: none (chose from { hermes })'
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (PYDANTIC, "Value error, User-specified max_model_len (51200) is greater than the derived one."),
        (PARSER, "vllm: error: argument --dtype: invalid choice: 'x' (choose from 'auto', 'half')"),
        (TRACEBACK, "KeyError: 'invalid tool call parser: none (chose from { hermes })'"),
        ("something else\n", "something else"),
        ("", "exit code 1"),
    ],
)
def test_a_refusal_is_one_line(output: str, reason: str) -> None:
    assert argument_check.refusal(ADAPTER.argument_check, 1, output) == reason


@pytest.mark.parametrize("code", [0, ADAPTER.argument_check.no_result, 125, 126, 127, 137, 142, -9])
def test_other_exit_codes_refuse_nothing(code: int) -> None:
    assert argument_check.refusal(ADAPTER.argument_check, code, TRACEBACK) == ""


def test_the_command_has_the_gpus_and_the_mounts_of_the_release() -> None:
    instance = Instance(name="main", model="tiny-a", port=5005, gpus=("0",))
    settings = Settings(environment={"VLLM_API_KEY": "s3cret"}, memory="8g")
    stored = StoredModel("/mnt/models/tiny-a/r", "r")
    release = render(instance, ["--dtype", "half"], stored, "image@sha256:0", settings, number=3).release
    argv = argument_check.argv("docker", release, "/var/lib/inference/releases/main/3/engine.env")
    assert argv[:3] == ["docker", "run", "--rm"]
    for wanted in (
        "--device=nvidia.com/gpu=0",
        "--user=2000:2000",
        "--env-file=/var/lib/inference/releases/main/3/engine.env",
        "--mount=type=bind,source=/mnt/models,target=/mnt/models,readonly",
        "--tmpfs=/tmp",
    ):
        assert wanted in argv
    # The container that checks arguments must not take name, network, memory or labels of the container that serves.
    assert not [item for item in argv if item.startswith(("--name", "--network=host", "--memory", "--label"))]
    image = argv.index("image@sha256:0")
    assert argv[image + 1] == "-c"
    assert argv[image + 3 :] == release.engine_argv
    ast.parse(argv[image + 2])
