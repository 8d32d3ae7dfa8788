# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that an instance starts from: what is wrong with them, and their repair."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    managed,
)

from .conftest import NOW


def test_an_intact_instance_has_nothing_wrong(paths: Paths) -> None:
    assert managed.verify(paths, "main") == []
    assert managed.verify(paths, "nobody") == []


def change(path: Path) -> None:
    path.write_text("[Service]\nExecStart=/bin/false\n")


def empty(path: Path) -> None:
    path.write_text("")


def open_up(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize("which", ["unit", "env"])
@pytest.mark.parametrize("hurt", [change, empty, Path.unlink, open_up])
def test_an_installed_file_is_repaired_and_the_wrong_one_kept(
    paths: Paths, which: str, hurt: Callable[[Path], None]
) -> None:
    path = getattr(paths, which)("main")
    good, mode = path.read_bytes(), path.stat().st_mode
    hurt(path)
    wrong = managed.verify(paths, "main")
    assert [one.path for one in wrong] == [path]
    found = path.read_bytes() if path.exists() else None
    done = managed.repair(paths, "main", wrong, NOW)
    assert len(done) == 1 and str(path) in done[0]
    assert path.read_bytes() == good and path.stat().st_mode == mode
    assert managed.verify(paths, "main") == []
    if found is not None:
        (aside,) = paths.aside("main").iterdir()
        assert aside.read_bytes() == found and aside.stat().st_mode & 0o777 == 0o600


def test_an_installed_file_that_cannot_be_read_is_repaired(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad sector of the disk can be the reason."""
    path, read = paths.unit("main"), Path.read_bytes
    inode = path.stat().st_ino

    def read_bytes(one: Path) -> bytes:
        if one == path and one.stat().st_ino == inode:
            raise OSError(errno.EIO, "Input/output error")
        return read(one)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    done = managed.repair(paths, "main", managed.verify(paths, "main"), NOW)
    assert done[0].endswith("; the wrong file cannot be read (Input/output error), so it is not kept")
    assert managed.verify(paths, "main") == [] and not paths.aside("main").exists()


def test_a_release_is_repaired_from_the_installed_file(paths: Paths) -> None:
    copy = paths.release("main", 1) / releases.ENV_FILE
    good = copy.read_bytes()
    copy.write_text("VLLM_API_KEY=other\n")
    wrong = managed.verify(paths, "main")
    assert [one.path for one in wrong] == [copy]
    managed.repair(paths, "main", wrong, NOW)
    assert copy.read_bytes() == good


def test_a_file_without_a_sound_copy_is_not_repaired(paths: Paths) -> None:
    (paths.release("main", 1) / releases.ENV_FILE).write_text("X=1\n")
    paths.env("main").write_text("Y=1\n")
    wrong = managed.verify(paths, "main")
    assert wrong and all(one.source is None for one in wrong)
    assert managed.repair(paths, "main", wrong, NOW) == []
    assert paths.env("main").read_text() == "Y=1\n"


def test_without_checksums_the_releases_own_copy_counts(paths: Paths) -> None:
    paths.known_good("main").write_text("{")
    assert managed.verify(paths, "main") == []
    change(paths.unit("main"))
    assert [one.path for one in managed.verify(paths, "main")] == [paths.unit("main")]


def test_a_damaged_release_is_named(paths: Paths) -> None:
    (paths.release("main", 1) / releases.RELEASE_FILE).write_text("{}")
    (wrong,) = managed.verify(paths, "main")
    assert "release.json" in str(wrong) and wrong.source is None


def test_a_missing_link_to_the_active_release_is_set_again(paths: Paths) -> None:
    paths.active("main").unlink()
    managed.repair(paths, "main", managed.verify(paths, "main"), NOW)
    assert releases.active_number(paths, "main") == 1
