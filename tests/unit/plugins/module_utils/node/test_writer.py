# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a thread writes: the newest text of each file, and one message for a disk that fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.node.writer import Writer


def test_the_newest_text_is_written_if_the_disk_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str | None]] = []
    hangs, hung = threading.Event(), threading.Event()

    def write(path: Path, text: str | None) -> bool:
        hung.set()
        hangs.wait(10)
        written.append((path.name, text))
        return True

    monkeypatch.setattr(files, "write", write)
    writer = Writer(pytest.fail)
    writer.put(tmp_path / "a", "1")
    assert hung.wait(10)
    for text in ("2", "3"):
        writer.put(tmp_path / "a", text)
    writer.put(tmp_path / "b", None)
    assert not writer.flush(0.05)
    hangs.set()
    assert writer.flush(10)
    assert written == [("a", "1"), ("a", "3"), ("b", None)]


def test_a_file_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    reported: list[str] = []
    writer = Writer(reported.append)
    (tmp_path / "file").write_text("")
    below = tmp_path / "file/below"
    for text in ("1", "2"):
        writer.put(below, text)
        assert writer.flush(10)
    assert len(reported) == 1 and reported[0].startswith(f"{below} cannot be written: ")
    (tmp_path / "file").unlink()
    writer.put(below, "3")
    assert writer.flush(10) and below.read_text() == "3"
