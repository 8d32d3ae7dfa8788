# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directories that `tests/tools/pytest` makes in the memory, and removes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]

SHM = Path("/dev/shm")


def test_the_directory_of_a_run_that_was_killed_is_removed_at_the_next_start(tmp_path: Path) -> None:
    script = (ROOT / "tests/tools/pytest").read_text(encoding="utf-8").replace(str(SHM), str(tmp_path))
    (tmp_path / "bin").mkdir()
    for name, text in {
        "df": "printf 'Avail\\n4096\\n'",
        "findmnt": "echo rw",
        "pytest": f"echo $TMPDIR > {tmp_path}/seen",
    }.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    stale, live, other = (tmp_path / name for name in (f"unit.{ended}.abcd", f"unit.{os.getpid()}.abcd", "unit.abcd"))
    for path in (stale, live, other):
        (path / "below").mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    environment.pop("TMPDIR", None)
    subprocess.run(["bash", "-c", script], env=environment, check=True)
    seen = Path((tmp_path / "seen").read_text(encoding="utf-8").strip())
    assert seen.parent == tmp_path and not seen.exists(), "the run has its own directory, and removes it"
    assert not stale.exists() and live.exists() and other.exists()
