# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import staging, trees

LARGE = 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path, text in {
        "etc/inference/a.json": "a",
        "etc/inference/env/main.env": "key",
        "var/lib/inference/releases/main/1/release.json": "{}",
        "var/lib/inference/probe/main.json": "always new",
        "var/lib/inference/lock": "held",
        "var/lib/inference/gang/big.json": '{"epoch": 4}',
        "var/lib/inference/gang-move/big.json": '{"release": 3}',
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "etc/inference/env/main.env").chmod(0o600)
    (root / "var/lib/inference/releases/main/active").symlink_to("1")
    os.mkfifo(root / "etc/inference/pipe")
    os.utime(root / "etc/inference/a.json", (1_000_000, 1_000_000))
    return root


PATTERNS = ["/etc/inference", "/var/lib/inference", "/etc/nothing", "/etc/systemd/*.service"]


def test_a_copy_equals_the_files(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    done = staging.stage(root, PATTERNS, ["/etc/inference/left-out"], copy, LARGE, sleep=lambda seconds: None)
    assert (done.files, done.tries) == (3, 1)
    assert copy.stat().st_mode & 0o777 == 0o700
    assert (copy / "etc/inference/env/main.env").stat().st_mode & 0o777 == 0o600
    assert (copy / "etc/inference/a.json").stat().st_mtime == 1_000_000
    assert os.readlink(copy / "var/lib/inference/releases/main/active") == "1"
    momentary = ("probe", "lock", "gang", "gang-move")
    for path in ("etc/inference/pipe", *(f"var/lib/inference/{name}" for name in momentary)):
        assert not os.path.lexists(copy / path), path
    found = trees.listing(copy, PATTERNS)
    assert trees.compare(found, copy, root) == []


def test_files_that_change_during_the_copy_are_copied_again(root: Path, tmp_path: Path) -> None:
    changes = iter(["one", "two"])

    def meanwhile(seconds: float) -> None:
        if seconds == staging.SETTLE_SECONDS and (text := next(changes, "")):
            (root / "etc/inference/a.json").write_text(text)

    done = staging.stage(root, PATTERNS, [], tmp_path / "copy", LARGE, sleep=meanwhile)
    assert done.tries == 3
    assert (tmp_path / "copy/etc/inference/a.json").read_text() == "two"


def test_files_that_never_stop_changing_are_an_error(root: Path, tmp_path: Path) -> None:
    count = iter(range(1000))

    def always(seconds: float) -> None:
        (root / f"etc/inference/{next(count)}.json").write_text("x")

    with pytest.raises(staging.StagingError, match=r"/etc/inference/\d+\.json.*backup_exclude"):
        staging.stage(root, PATTERNS, [], tmp_path / "copy", LARGE, sleep=always)


def test_an_earlier_copy_takes_no_space_from_the_next(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=0 if copy.exists() else 4096, f_frsize=1))
    assert staging.stage(root, PATTERNS, [], copy, LARGE, sleep=lambda seconds: None).tries == 1


def test_files_above_the_limit_are_an_error(root: Path, tmp_path: Path) -> None:
    with (root / "etc/inference/model.safetensors").open("wb") as stream:
        stream.truncate(3 << 20)
    with pytest.raises(staging.StagingError, match=r"model\.safetensors \(3 MiB\)"):
        staging.stage(root, PATTERNS, [], tmp_path / "copy", 1 << 20)
    assert not (tmp_path / "copy").exists()
    staging.stage(root, PATTERNS, ["/etc/inference/*.safetensors"], tmp_path / "copy", 1 << 20)
