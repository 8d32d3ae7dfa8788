# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often an instance has tried to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import attempts


def test_restarts_are_counted_until_the_engine_answers(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert attempts.count(paths, "main") == 0
    assert [attempts.begin(paths, "main", restarts) for restarts in (0, 1, 2)] == [1, 2, 3]
    assert attempts.count(paths, "main") == 3 and attempts.count(paths, "side") == 0
    attempts.ready(paths, "main")
    attempts.ready(paths, "main")
    # systemd goes on counting after the death of an engine that served. The next start is the first attempt.
    assert attempts.begin(paths, "main", 7) == 1


def test_a_start_on_purpose_is_the_first_attempt(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert [attempts.begin(paths, "main", restarts) for restarts in (0, 1, 0)] == [1, 2, 1]


@pytest.mark.parametrize("text", ["{", "[]", '{"attempt": "2"}', '{"attempt": null}', "{}"])
def test_a_damaged_count_is_zero(tmp_path: Path, text: str) -> None:
    paths = Paths(tmp_path)
    files.write(paths.starts("main"), text)
    assert attempts.count(paths, "main") == 0
    assert attempts.begin(paths, "main", 4) == 1


def test_a_directory_in_the_place_of_the_count_is_zero(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.starts("main").mkdir(parents=True)
    assert attempts.count(paths, "main") == 0
