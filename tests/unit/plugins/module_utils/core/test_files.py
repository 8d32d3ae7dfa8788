# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are written completely or not at all, and only if they change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_file_is_written_once_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a/b/secret"
    assert files.text(path) is None and not files.same(path, "x")
    assert files.write(path, "x", 0o600) is True
    assert (path.read_text(), mode(path)) == ("x", 0o600)
    before = path.stat().st_ino
    assert files.write(path, "x", 0o600) is False and path.stat().st_ino == before
    assert files.write(path, b"x") is True and mode(path) == 0o644
    assert [child.name for child in path.parent.iterdir()] == ["secret"]
    assert files.same(path, "x") and not files.same(path, "x", 0o600) and not files.same(path, "y")
    assert files.write(path, None) is True and not path.exists()
    assert files.write(path, None) is False


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    files.write(path, "old")

    def fails(_source: object, _target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        files.write(path, "new")
    assert path.read_text() == "old" and [child.name for child in tmp_path.iterdir()] == ["a"]


def test_invalid_bytes_of_a_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\xffb")
    assert files.text(tmp_path / "a") == "a\ufffdb"


def test_state_files_are_json(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert files.read_json(path) is None
    assert files.write_json(path, {"b": 1, "a": [2]}) is True
    assert path.read_text() == files.to_json({"a": [2], "b": 1}) == '{\n  "a": [\n    2\n  ],\n  "b": 1\n}\n'
    assert files.write_json(path, {"a": [2], "b": 1}) is False
    assert files.read_json(path) == {"a": [2], "b": 1}
    path.write_text("{")
    with pytest.raises(ValueError, match=f"^{path} is not JSON: "):
        files.read_json(path)


def test_a_link_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "active"
    (tmp_path / f".active.{os.getpid()}").write_text("from a run that was interrupted")
    assert files.link(link, "1") is True
    assert files.link(link, "1") is False
    assert files.link(link, "2") is True
    assert os.readlink(link) == "2" and [child.name for child in tmp_path.iterdir()] == ["active"]


def test_the_state_of_a_module_names_its_files_or_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert files.read_written(path) == {}
    path.write_text('{"files": ["a"], "schema": 1}')
    assert files.read_written(path) == {"files": ["a"], "schema": 1}
    for text in ("[]", "null", "3", '{"files": "abc"}', '{"files": [1]}', '{"files": null}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"{path} is damaged: remove this file"):
            files.read_written(path)
