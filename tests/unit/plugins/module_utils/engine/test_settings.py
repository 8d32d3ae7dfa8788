# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the role's settings for containers."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.settings import (
    check_environment,
    check_settings,
)

GOOD: dict[str, Any] = {
    "store_path": "/mnt/models",
    "cache_path": "/mnt/nvme/workspace/vllm_cache",
    "start_timeout": 1800,
    "drain_timeout": 120,
    "shm_size": "16g",
    "memory": "",
    "pids_limit": 16384,
    "ulimits": {"memlock": "-1", "nofile": "1024:2048"},
    "cap_add": ["IPC_LOCK"],
}


def test_right_settings_have_no_mistake() -> None:
    assert check_settings(GOOD) == []
    assert check_settings({**GOOD, "fast_path": ""}) == []
    assert check_settings({**GOOD, "fast_path": "/mnt/nvme/workspace/models"}) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"store_path": "models"}, "vllm_store_path: 'models': must be an absolute path"),
        ({"store_path": "/a,b"}, "without comma"),
        ({"fast_path": "fast"}, "vllm_fast_path: 'fast': must be an absolute path"),
        ({"cache_path": "/cache/"}, "without a slash at its end"),
        ({"start_timeout": 0}, "1 or more"),
        ({"drain_timeout": -5}, "1 or more"),
        ({"pids_limit": 3}, "64 or more"),
        ({"shm_size": "big"}, "such as 16g"),
        ({"shm_size": f"{'9' * 5000}g"}, "such as 16g"),
        ({"memory": "1 TB"}, "such as 16g or 200g, 0 for no limit, or empty for the default"),
        ({"ulimits": {"memlok": 1}}, "did you mean 'memlock'?"),
        ({"ulimits": {"memlock": "unlimited"}}, "-1 for none"),
        ({"cap_add": ["ipc lock"]}, "like IPC_LOCK"),
        # Blocks of YAML text end with a line break.
        ({"store_path": "/mnt/models\n"}, "must be an absolute path"),
        ({"fast_path": "/mnt/nvme\n"}, "must be an absolute path"),
        ({"shm_size": "16g\n"}, "such as 16g"),
        ({"ulimits": {"memlock": "-1\n"}}, "-1 for none"),
        ({"cap_add": ["IPC_LOCK\n"]}, "like IPC_LOCK"),
    ],
)
def test_each_mistake_of_the_settings_is_named(change: dict[str, Any], text: str) -> None:
    assert text in "\n".join(map(str, check_settings({**GOOD, **change})))


def test_all_mistakes_are_reported_at_once() -> None:
    assert len(check_settings({**GOOD, "shm_size": "x", "memory": "y", "drain_timeout": 0})) == 3


@pytest.mark.parametrize("key", ["", " ", "#A", "B C", "1X", "A=B", "A\n"])
def test_a_text_that_is_no_name_of_a_variable_is_refused(key: str) -> None:
    assert "is no name" in str(check_environment({key: "x"}, {})[0])


@pytest.mark.parametrize("variable", ["VLLM_DP_SIZE", "VLLM_DP_RANK", "VLLM_DP_MASTER_IP"])
def test_the_variables_for_ranks_are_refused(variable: str) -> None:
    found = check_environment({variable: "2"}, {variable: "long-enough"})
    assert [str(one).partition(" would make")[0] for one in found] == [
        f"vllm_environment: {variable}:",
        f"vllm_secret_environment: {variable}:",
    ]
    assert all("use data-parallel-size in the model's entry" in str(one) for one in found)


def test_secrets_are_long_and_never_shown() -> None:
    problems = check_environment({}, {"TOKEN": "short", "KEY": "long-enough\nbut-two-lines"})
    text = "\n".join(map(str, problems))
    assert "8 characters or more" in text
    assert "one line" in text
    assert "short" not in text
    assert "long-enough" not in text
