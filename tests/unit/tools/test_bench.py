# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of `make bench` after a failure. No test starts a node."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from nodes import NodeError


@pytest.fixture
def bench(script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("INFERENCE_CACHE", str(tmp_path))
    return script("bench")


@pytest.mark.parametrize(
    "error",
    [
        NodeError("no boot"),
        OSError("no answer to a scrape"),
        ValueError("no number"),
        subprocess.CalledProcessError(1, "systemctl start inference-backup.service"),
    ],
)
def test_a_failed_part_is_printed_and_the_next_part_runs(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    ran = []

    def fail() -> None:
        raise error

    assert not bench.run_parts([fail, lambda: ran.append("gateway")])
    assert ran == ["gateway"]
    assert capsys.readouterr().err == f"ERROR: {error}\n"


def test_parts_without_a_failure_pass(bench: ModuleType) -> None:
    assert bench.run_parts([lambda: None, lambda: None])
