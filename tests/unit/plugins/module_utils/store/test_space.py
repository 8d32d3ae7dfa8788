# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether there is space for the models that are not in the store yet."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB
from ansible_collections.baremetal.inference.plugins.module_utils.store.space import (
    check_space,
    existing,
    free_bytes,
    same_file_system,
)


def test_the_problem_of_missing_space_has_bytes_and_path(tmp_path: Path) -> None:
    need, root = 10_000, tmp_path / "store"
    assert check_space(root, {"m": need}, 0, free=need) == []
    assert check_space(root, {"m": need}, 2 * GIB, free=need + 2 * GIB) == []
    (problem,) = check_space(root, {"m": need, "n": need}, 2 * GIB, free=need + 2 * GIB)
    assert "needed 2.00 GiB" in str(problem)
    assert "free 2.00 GiB" in str(problem)
    assert str(tmp_path) in str(problem)


def test_a_full_disk_is_no_problem_if_no_bytes_are_needed(tmp_path: Path) -> None:
    assert check_space(tmp_path / "store", {"m": 0}, 100 * GIB, free=0) == []


def test_free_space_is_that_of_the_nearest_existing_directory(tmp_path: Path) -> None:
    assert existing(tmp_path / "a/b") == tmp_path
    assert same_file_system(tmp_path / "a/b", tmp_path)
    assert not same_file_system(tmp_path, Path("/proc/self"))
    status = os.statvfs("/proc")
    assert free_bytes(Path("/proc/nowhere/at/all")) == status.f_bavail * status.f_frsize
    (problem,) = check_space(Path("/proc/nowhere"), {"m": 1}, 0)
    assert "free 0.00 GiB on the file system of /proc:" in str(problem)
