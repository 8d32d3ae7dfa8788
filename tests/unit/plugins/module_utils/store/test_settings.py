# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role model_store: every mistake at once, each with the variable and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store import settings

SOUND: dict[str, Any] = {
    "path": "/mnt/models",
    "fast_path": "",
    "reserve_gib": 5,
    "fast_limit_gib": 0,
    "parallel_transfers": 4,
    "peer_transfers": 4,
    "keep": 2,
}


def problems(**changes: Any) -> list[str]:
    return [str(problem) for problem in settings.problems({**SOUND, **changes})]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fast_path": "/mnt/nvme/models"},
        # Neither path is below the other, although both begin alike.
        {"fast_path": "/mnt/models-fast"},
        {"reserve_gib": "0.5", "parallel_transfers": "1", "keep": 1},
    ],
)
def test_sound_settings_have_no_problem(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


@pytest.mark.parametrize("path", ["", "/", "//models", "models", "./models"])
def test_a_store_that_is_no_absolute_path_below_the_root_is_a_problem(path: str) -> None:
    (problem,) = problems(path=path)
    assert problem.startswith(f"role model_store: model_store_path: '{path}': must be an absolute path below /")


@pytest.mark.parametrize("path", ["models", "/", "/mnt", "/mnt/models", "/mnt/models/", "/mnt/models/fast"])
def test_a_fast_path_that_overlaps_the_store_or_is_relative_is_a_problem(path: str) -> None:
    (problem,) = problems(fast_path=path)
    assert problem.startswith(f"role model_store: model_store_fast_path: '{path}': must be empty, or an absolute path")


@pytest.mark.parametrize(
    ("key", "value"),
    [("reserve_gib", -1), ("fast_limit_gib", -0.5), ("parallel_transfers", 0), ("peer_transfers", "0"), ("keep", 0)],
)
def test_a_number_that_is_too_small_is_a_problem(key: str, value: Any) -> None:
    (problem,) = problems(**{key: value})
    assert problem.startswith(f"role model_store: model_store_{key}: ") and "must be " in problem


def test_all_problems_of_settings_are_reported_at_once() -> None:
    assert len(problems(path="models", fast_path="x", **dict.fromkeys(settings.LEAST, -1))) == 7
