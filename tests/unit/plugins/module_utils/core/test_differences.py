# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and units that are not as declared are named, each with what is wrong."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import differences, systemd


@pytest.mark.parametrize(
    ("declared", "word"),
    [
        ({"text": "ours\n"}, ""),
        ({"text": "others\n"}, "has another text or mode"),
        ({"text": None}, ""),
        ({"checksum": f"sha256:{hashlib.sha256(b'ours' + bytes([10])).hexdigest().upper()}"}, ""),
        ({"checksum": f"sha256:{'0' * 64}"}, "has another checksum"),
        ({"checksum": "sha256:https://example.com/sums"}, "has another checksum"),
        ({"checksum": "no-such:1"}, "has another checksum"),
        ({"state": "absent"}, "exists"),
    ],
)
def test_an_existing_file_is_compared(tmp_path: Path, declared: dict[str, Any], word: str) -> None:
    (tmp_path / "file").write_text("ours\n")
    (tmp_path / "file").chmod(0o644)
    found = differences.of_files([{"path": "/file", **declared}], tmp_path)
    assert found == ([f"/file {word}"] if word else [])


def test_a_missing_file_is_a_difference(tmp_path: Path) -> None:
    declared = [{"path": "/file", "text": ""}, {"path": "/other"}, {"path": "/none", "state": "absent"}]
    assert differences.of_files(declared, tmp_path) == ["/file is missing", "/other is missing"]


def test_a_file_with_another_mode_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ours\n")
    (tmp_path / "file").chmod(0o600)
    assert differences.of_files([{"path": "/file", "text": "ours\n"}], tmp_path) == ["/file has another text or mode"]


def chowned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the current user another user than the owner of the file."""
    number = path.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: number)


@pytest.mark.parametrize("declared", [{"text": "ours\n"}, {"text": None}])
def test_mode_and_owner_count_whatever_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: dict[str, Any]
) -> None:
    path = tmp_path / "file"
    path.write_text("ours\n")
    path.chmod(0o600)
    assert len(differences.of_files([{"path": "/file", **declared}], tmp_path)) == 1
    path.chmod(0o644)
    assert differences.of_files([{"path": "/file", **declared}], tmp_path) == []
    chowned(path, monkeypatch)
    found = differences.of_files([{"path": "/file", **declared}], tmp_path)
    assert found == ["/file has another owner or mode"]


def test_a_directory_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = [{"path": "/part", "state": "directory"}]
    path = tmp_path / "part"
    assert differences.of_files(declared, tmp_path) == ["/part is missing"]
    path.touch(0o755)
    wrong = ["/part is not a directory, or has another owner or mode"]
    assert differences.of_files(declared, tmp_path) == wrong
    path.unlink()
    path.mkdir()
    path.chmod(0o755)
    assert differences.of_files(declared, tmp_path) == []
    path.chmod(0o700)
    assert differences.of_files(declared, tmp_path) == wrong
    path.chmod(0o755)
    chowned(path, monkeypatch)
    assert differences.of_files(declared, tmp_path) == wrong


def test_a_broken_link_exists(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert differences.of_files([{"path": "/link", "state": "absent"}], tmp_path) == ["/link exists"]


def test_units_that_are_disabled_or_do_not_run_are_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {
        "good.service": ("active", "enabled"),
        "off.service": ("active", "disabled"),
        "down.service": ("inactive", "enabled"),
        "oneshot.service": ("inactive", "enabled"),
        "by-hand.service": ("active", "disabled"),
        "by-package.service": ("active", "static"),
    }

    def show(units: list[str], properties: list[str]) -> dict[str, dict[str, str]]:
        return {unit: dict(zip(properties, states[unit], strict=True)) for unit in units}

    monkeypatch.setattr(systemd, "show", show)
    declared: list[dict[str, Any]] = [
        {"name": name} for name in ("good.service", "off.service", "down.service", "by-package.service")
    ]
    declared += [{"name": "oneshot.service", "active": False}, {"name": "by-hand.service", "enabled": False}]
    assert differences.of_units(declared) == ["off.service is not enabled", "down.service does not run"]
