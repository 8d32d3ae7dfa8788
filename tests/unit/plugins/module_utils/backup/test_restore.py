# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import restore, trees


def fill(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    root = tmp_path / "saved"
    fill(
        root,
        {
            "etc/inference/a.json": "a",
            "etc/inference/env/main.env": "KEY=secret-1",
            "etc/systemd/system/vllm@main.service": "[Service]\n",
            "var/lib/inference/releases/main/2/release.json": "{}",
        },
    )
    (root / "etc/inference/env/main.env").chmod(0o600)
    (root / "var/lib/inference/releases/main/active").symlink_to("2")
    return root


@pytest.fixture
def live(saved: Path, tmp_path: Path) -> Path:
    """A copy of the saved files, which a test changes."""
    root = tmp_path / "live"
    found = trees.listing(saved, ["/*"])
    root.mkdir()
    for path in sorted(found):
        trees.copy(saved / path, root / path, found[path])
    return root


PATTERNS = ["/etc/inference", "/var/lib/inference", "/etc/systemd/system/vllm@*.service"]


def test_equal_trees_have_no_differences(saved: Path, live: Path, tmp_path: Path) -> None:
    plan = restore.plan(saved, live, PATTERNS)
    assert plan.differences == [] and plan.only_here == []


def test_all_files_are_restored_and_the_replaced_files_are_kept(saved: Path, live: Path, tmp_path: Path) -> None:
    (live / "etc/inference/a.json").write_text("b")
    (live / "etc/inference/env/main.env").chmod(0o644)
    (live / "etc/inference/new.json").write_text("new")
    (live / "etc/systemd/system/vllm@main.service").unlink()
    active = live / "var/lib/inference/releases/main/active"
    active.unlink()
    active.symlink_to("1")
    # A directory in place of a file.
    (live / "var/lib/inference/releases/main/2/release.json").unlink()
    fill(live, {"var/lib/inference/releases/main/2/release.json/inside": "x"})
    plan = restore.plan(saved, live, PATTERNS)
    found = {difference.path: difference.differs for difference in plan.differences}
    assert found == {
        "etc/inference/a.json": ("content",),
        "etc/inference/env/main.env": ("mode",),
        "etc/systemd/system/vllm@main.service": ("missing",),
        "var/lib/inference/releases/main/2/release.json": ("kind",),
        "var/lib/inference/releases/main/active": ("target",),
    }
    assert "etc/inference/new.json" in plan.only_here
    assert restore.instances(plan.differences) == ["main"]
    assert "secret" not in str(plan.diff())
    aside = tmp_path / "aside/now"
    restore.lay_over(plan, aside)
    assert restore.plan(saved, live, PATTERNS).differences == []
    assert (live / "etc/inference/new.json").read_text() == "new"
    assert (aside / "etc/inference/a.json").read_text() == "b"
    assert os.readlink(aside / "var/lib/inference/releases/main/active") == "1"
    assert (aside / "var/lib/inference/releases/main/2/release.json/inside").read_text() == "x"
    (tmp_path / "aside/before").mkdir()
    restore.keep_only(aside)
    assert list(aside.parent.iterdir()) == [aside] and restore.unfinished(aside.parent) == []


def test_a_restore_that_fails_is_undone(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (live / "etc/inference/a.json").write_text("b")
    (live / "etc/systemd/system/vllm@main.service").unlink()
    os.unlink(live / "var/lib/inference/releases/main/active")
    before = trees.listing(live, PATTERNS)
    copy = trees.copy

    def full(source: Path, destination: Path, one: trees.Entry, owner: tuple[int, int] | None = None) -> None:
        if source.name == "active":
            raise OSError(28, "No space left on device")
        copy(source, destination, one, owner)

    monkeypatch.setattr(trees, "copy", full)
    with pytest.raises(restore.RestoreError, match="No space left"):
        restore.lay_over(restore.plan(saved, live, PATTERNS), tmp_path / "aside")
    assert set(trees.listing(live, PATTERNS)) == set(before)
    assert (live / "etc/inference/a.json").read_text() == "b" and not list(tmp_path.glob("aside*"))


def test_a_directory_that_a_file_replaced_is_back_after_a_restore_that_fails(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = live / "var/lib/inference/releases/main/2/release.json"
    release.unlink()
    fill(release, {"inside": "x"})
    os.unlink(live / "var/lib/inference/releases/main/active")
    copy = trees.copy

    def full(source: Path, destination: Path, one: trees.Entry, owner: tuple[int, int] | None = None) -> None:
        if source.name == "active":
            raise OSError(28, "No space left on device")
        copy(source, destination, one, owner)

    monkeypatch.setattr(trees, "copy", full)
    with pytest.raises(restore.RestoreError, match="The changes before this error were undone"):
        restore.lay_over(restore.plan(saved, live, PATTERNS), tmp_path / "aside")
    assert (release / "inside").read_text() == "x"


def test_a_pipe_in_place_of_a_file_is_kept_and_back_after_a_restore_that_fails(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, aside = live / "etc/inference/a.json", tmp_path / "aside"
    pipe.unlink()
    os.mkfifo(pipe)
    os.unlink(live / "var/lib/inference/releases/main/active")
    copy = trees.copy

    def full(source: Path, destination: Path, one: trees.Entry, owner: tuple[int, int] | None = None) -> None:
        if source.name == "active":
            raise OSError(28, "No space left on device")
        copy(source, destination, one, owner)

    plan = restore.plan(saved, live, PATTERNS)
    assert "(socket, pipe or device)\n" in [one["before"] for one in plan.diff()]
    with monkeypatch.context() as broken:
        broken.setattr(trees, "copy", full)
        with pytest.raises(restore.RestoreError, match="The changes before this error were undone"):
            restore.lay_over(plan, aside)
    assert pipe.is_fifo()
    restore.lay_over(restore.plan(saved, live, PATTERNS), aside)
    assert pipe.read_text() == "a" and (aside / "etc/inference/a.json").is_fifo()


@pytest.mark.parametrize("lost", ["etc/inference/env", "var/lib/inference/releases/main"])
def test_a_directory_whose_owner_cannot_be_set_is_removed_after_the_failure(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The first directory is listed in the snapshot, the second is only the parent of a restored file."""
    shutil.rmtree(live / lost)
    before = trees.listing(live, ["/*"])

    def refuse(path: Path, *_owner: Any, **_options: Any) -> None:
        if path == live / lost:
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(trees.os, "chown", refuse)
    plan = restore.plan(saved, live, ["/etc/inference", "/var/lib/inference/releases/main/active"])
    with pytest.raises(restore.RestoreError, match=r"not permitted\. The changes before this error were undone"):
        restore.lay_over(plan, tmp_path / "aside")
    assert trees.listing(live, ["/*"]) == before


def test_a_directory_that_was_changed_in_part_is_as_before_after_the_failure(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, chmod = live / "etc/inference/env", os.chmod
    (saved / "etc/inference/env").chmod(0o750)
    place.chmod(0o700)

    def fail_late(path: Path, mode: int) -> None:
        chmod(path, mode)
        if mode == 0o750:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(trees.os, "chmod", fail_late)
    with pytest.raises(restore.RestoreError, match="The changes before this error were undone"):
        restore.lay_over(restore.plan(saved, live, PATTERNS), tmp_path / "aside")
    assert place.stat().st_mode & 0o7777 == 0o700


def test_the_only_copy_of_a_directory_that_was_moved_in_part_stays(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = live / "var/lib/inference/releases/main/2/release.json"
    release.unlink()
    fill(release, {"inside": "x", "other": "y"})
    kept = tmp_path / "aside-unfinished/var/lib/inference/releases/main/2/release.json"

    def fail_late(source: Path, target: Path) -> None:
        shutil.copytree(source, target)
        (source / "inside").unlink()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(restore.shutil, "move", fail_late)
    with pytest.raises(restore.RestoreError, match="could not be undone"):
        restore.lay_over(restore.plan(saved, live, PATTERNS), tmp_path / "aside")
    assert (kept / "inside").read_text() == "x"


def test_a_restore_that_cannot_be_undone_names_the_reason(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (live / "etc/inference/a.json").write_text("b")
    (live / "etc/inference/env/main.env").write_text("KEY=secret-2")
    os.unlink(live / "var/lib/inference/releases/main/active")
    copy, aside, kept = trees.copy, tmp_path / "aside/1", tmp_path / "aside/1-unfinished"

    def broken(source: Path, destination: Path, one: trees.Entry, owner: tuple[int, int] | None = None) -> None:
        if source.name == "active" or source == kept / "etc/inference/a.json":
            raise OSError(5, f"Input/output error at {source.name}")
        copy(source, destination, one, owner)

    with monkeypatch.context() as disk:
        disk.setattr(trees, "copy", broken)
        with pytest.raises(
            restore.RestoreError, match=r"at active\. Some changes .* at a\.json\. .* in .*aside"
        ) as caught:
            restore.lay_over(restore.plan(saved, live, PATTERNS), aside)
    assert "nothing was restored" not in str(caught.value) and str(kept) in str(caught.value)
    assert (live / "etc/inference/a.json").read_text() == "a"
    assert (live / "etc/inference/env/main.env").read_text() == "KEY=secret-2", "the other changes are undone"
    # A later restore that succeeds leaves the only copy in place.
    later = aside.with_name("2")
    restore.lay_over(restore.plan(saved, live, PATTERNS), later)
    restore.keep_only(later)
    assert restore.unfinished(aside.parent) == [kept] and (kept / "etc/inference/a.json").read_text() == "b"
    assert sorted(aside.parent.iterdir()) == [kept, later]


def test_a_restore_that_fails_leaves_no_part_of_a_file(
    saved: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (live / "etc/systemd/system/vllm@main.service").unlink()
    before = trees.listing(live, ["/etc"])

    def full(*_words: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trees.shutil, "copyfileobj", full)
    with pytest.raises(restore.RestoreError, match="No space left"):
        restore.lay_over(restore.plan(saved, live, PATTERNS), tmp_path / "aside")
    assert set(trees.listing(live, ["/etc"])) == set(before)


def test_a_file_is_restored_to_another_place(saved: Path, live: Path, tmp_path: Path) -> None:
    plan = restore.plan_to(saved, "/etc/inference/a.json", live / "etc/inference/env")
    restore.lay_over(plan, tmp_path / "aside")
    assert (live / "etc/inference/env/a.json").read_text() == "a"
    restore.lay_over(restore.plan_to(saved, "/etc/inference", live / "copy"), tmp_path / "aside")
    assert (live / "copy/env/main.env").stat().st_mode & 0o777 == 0o600
    with pytest.raises(restore.RestoreError, match="is not a directory on the node"):
        restore.plan_to(saved, "/etc/inference/a.json", live / "not/there")
    with pytest.raises(restore.RestoreError, match="no files at /etc/x"):
        restore.plan_to(saved, "/etc/x", live)


def snapshot(identity: str, **more: Any) -> dict[str, Any]:
    return {"id": identity, "short_id": identity[:8], "time": "2026-11-20T02:30:00Z", "hostname": "n1", **more}


def test_an_ambiguous_or_unknown_snapshot_is_an_error() -> None:
    known = [snapshot("aaaa1111" * 8), snapshot("aaaa2222" * 8, tags=["inference-node", "machine-0badcafe"])]
    assert restore.choose(known, "latest", "n1") is known[1]
    assert restore.choose(known, "aaaa1", "n1") is known[0]
    assert restore.summary(known[1])["machine"] == "0badcafe"
    for wanted in ("aaaa", "a", "ffff"):
        with pytest.raises(restore.RestoreError, match="aaaa2222"):
            restore.choose(known, wanted, "n1")
    with pytest.raises(restore.RestoreError, match="has no snapshot of n2"):
        restore.choose([], "latest", "n2")
