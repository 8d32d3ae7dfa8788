# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of the first versions, which have only argv."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import first_releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    Release,
    Settings,
    bridge_of,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

RECORDED = Path(__file__).parent / "data/release-0.1.0.json"
ADDED = ("flags", "arguments", "settings")


def without_data(release: Release) -> str:
    """release.json as the first versions wrote it."""
    return json.dumps({key: value for key, value in json.loads(release.to_json()).items() if key not in ADDED})


def test_the_recorded_release_of_version_0_1_0_is_read() -> None:
    release = Release.from_json(RECORDED.read_text())
    assert release.flags == {"dtype": "bfloat16", "tensor-parallel-size": "2"}
    assert release.arguments == ["--dtype", "bfloat16", "--tensor-parallel-size", "2"]
    assert release.settings == Settings(ulimits={"memlock": "-1"})
    bridge = bridge_of(release, "A=b\n", 5105, ("2", "3"), 1).release
    pairs = zip(release.container_argv, bridge.container_argv, strict=True)
    assert [after for before, after in pairs if before != after] == [
        "--name=vllm-main_bridge",
        "--label=inference.release=1",
        "--device=nvidia.com/gpu=2",
        "--device=nvidia.com/gpu=3",
        "--env-file=/etc/inference/env/main_bridge.env",
        "--log-opt=tag=vllm@main_bridge",
        "5105",
    ]


SETTINGS: dict[str, tuple[Any, Any]] = {
    "fast_path": ("", "/mnt/nvme/models"),
    "memory": ("", "8g"),
    "cap_add": ((), ("IPC_LOCK", "SYS_NICE")),
    "ulimits": ({}, {"memlock": "-1", "nofile": "1:2"}),
    "gpu_request": ("cdi", "runtime"),
}
OTHERS: dict[str, Any] = {
    "uid": 77,
    "gid": 78,
    "start_timeout": 11,
    "drain_timeout": 12,
    "address": "10.0.0.5",
    "shm_size": "1g",
}


@pytest.mark.parametrize("path", ["/mnt/models/a/r", "/srv/nfs/m"])
@pytest.mark.parametrize("number", range(2 ** len(SETTINGS)))
def test_the_data_of_a_release_are_read_from_its_argv(number: int, path: str) -> None:
    chosen = list(itertools.product(*SETTINGS.values()))[number]
    settings = Settings(**OTHERS, **dict(zip(SETTINGS, chosen, strict=True)))
    arguments = ["--dtype", "half", "--stop=-1", "--json", '{"a": 1}', "--list", "a", "b"]
    instance = Instance("main", "tiny-a", 5005, gpus=("0", "0:1"))
    release = render(instance, arguments, StoredModel(path, "r"), "image", settings, number=3).release
    for one in (release, bridge_of(release, "", 5105, ("1", "2")).release):
        read = Release.from_json(without_data(one))
        assert dataclasses.replace(read, flags={}) == one


def test_the_flags_of_a_command_line_are_read() -> None:
    line = ["--dtype", "float32", "--enforce-eager", "--no-async-scheduling", "--max-model-len=512"]
    assert first_releases._flags([*line, "--seed", "1"]) == {
        "dtype": "float32",
        "enforce-eager": True,
        "async-scheduling": False,
        "max-model-len": "512",
        "seed": "1",
    }


def test_an_argv_that_the_collection_has_not_written_is_refused() -> None:
    damaged = {**json.loads(RECORDED.read_text()), "container_argv": ["create"]}
    with pytest.raises(ValueError, match="argv that this version does not understand"):
        Release.from_json(json.dumps(damaged))
