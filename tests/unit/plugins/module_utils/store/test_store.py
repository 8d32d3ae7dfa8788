# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of a node: a published revision is complete and verified, and never modified."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import store
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Plan, Store

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


class Bed:
    """A source, its manifest and a store."""

    def __init__(self, root: Path, source: Path) -> None:
        self.source = source
        self.root = root / "store"
        self.store = Store(self.root, HashCache())
        manifest, _problems = build(self.source, "models.m", HashCache())
        assert manifest
        self.manifest: Manifest = manifest

    def plan(self, verify: bool = False) -> Plan:
        self.store.verify = verify
        return self.store.plan("m", self.manifest)

    def bring(self) -> Plan:
        """Copy what the plan asks for, as rsync would."""
        plan = self.plan()
        for name in plan.missing:
            (plan.incoming / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.source / name, plan.incoming / name)
        return plan

    def publish(self) -> Path:
        plan = self.bring()
        self.store.publish(plan)
        return plan.path


@pytest.fixture
def bed(tmp_path: Path, write_model: Callable[..., Path]) -> Bed:
    return Bed(tmp_path, write_model(tmp_path / "source"))


def test_a_model_that_has_arrived_is_published(bed: Bed) -> None:
    plan = bed.plan()
    assert not plan.published
    assert plan.missing_bytes == bed.manifest.bytes
    path = bed.publish()
    assert path == bed.root / "m" / bed.manifest.revision
    assert (path / "templates" / "chat [1].jinja").read_text() == "{{ messages }}"
    assert not plan.incoming.exists()
    assert bed.plan().published


def test_with_any_umask_all_users_can_read_published_files(bed: Bed) -> None:
    old = os.umask(0o077)
    try:
        path = bed.publish()
    finally:
        os.umask(old)
    modes = {item: item.stat().st_mode & 0o777 for item in [path.parent, path, *path.rglob("*")]}
    assert {mode for item, mode in modes.items() if item.is_dir()} == {0o755}
    assert {mode for item, mode in modes.items() if item.is_file()} == {0o644}
    assert path / "manifest.json" in modes


def test_a_model_with_missing_or_wrong_files_is_not_published(bed: Bed) -> None:
    plan = bed.bring()
    (plan.incoming / SHARDS[0]).unlink()
    (plan.incoming / "config.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        bed.store.publish(plan)
    text = str(caught.value)
    assert f"{SHARDS[0]} did not arrive" in text
    assert "config.json arrived wrong and was removed" in text
    assert not plan.path.exists()
    # The next run brings what is missing, and keeps what had arrived.
    again = bed.plan()
    assert again.missing[SHARDS[0]] == bed.manifest.files[SHARDS[0]].size
    assert again.missing["config.json"] == bed.manifest.files["config.json"].size
    assert again.missing[SHARDS[1]] == 0
    bed.publish()


def test_the_missing_bytes_of_a_cut_off_transfer_count(bed: Bed) -> None:
    plan = bed.plan()
    plan.incoming.mkdir(parents=True)
    (plan.incoming / SHARDS[0]).write_bytes(b"x" * 1000)
    assert bed.plan().missing_bytes == bed.manifest.bytes - 1000


def test_other_files_among_the_arrived_files_are_not_published(bed: Bed) -> None:
    plan = bed.bring()
    (plan.incoming / "sub").mkdir()
    (plan.incoming / "sub" / ".config.json.Xa1").write_text("rsync's")
    bed.store.publish(plan)
    assert not (plan.path / "sub").exists()


def test_older_transfers_of_a_published_model_are_removed(bed: Bed) -> None:
    incoming = bed.plan().incoming.parent
    for name in ["m-0123456789ab", "m-2-0123456789ab", "other-0123456789ab"]:
        (incoming / name).mkdir(parents=True)
    bed.publish()
    assert sorted(path.name for path in incoming.iterdir()) == ["m-2-0123456789ab", "other-0123456789ab"]


def overwrite(name: str, text: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / name).write_text(text)

    return change


def replace_by_link(path: Path) -> None:
    (path / "config.json").unlink()
    (path / "config.json").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("change", "message", "fetched"),
    [
        (lambda path: os.truncate(path / SHARDS[1], 500), "bytes, found 500", {SHARDS[1]}),
        (lambda path: (path / "config.json").unlink(), "config.json is missing", {"config.json"}),
        (replace_by_link, "config.json is missing", {"config.json"}),
        (overwrite("config.json", '{"architectures": ["LlamaForCausalLX"]}'), "was altered", {"config.json"}),
        (overwrite("extra.json", "{}"), "extra.json does not belong there", set()),
        (overwrite("manifest.json", "{"), "manifest.json cannot be used", set()),
        (lambda path: (path / "manifest.json").unlink(), "manifest.json is missing", set()),
    ],
)
def test_a_damaged_revision_is_replaced_and_only_damaged_files_are_copied(
    bed: Bed, change: Callable[[Path], None], message: str, fetched: set[str]
) -> None:
    path = bed.publish()
    with (path / SHARDS[1]).open("rb") as mapped:
        change(path)
        plan = bed.plan()
        assert len(plan.damage) == 1
        assert message in plan.damage[0]
        assert set(plan.missing) == fetched
        seen = mapped.read()
        bed.publish()
        # What an engine has open stays as it is: files are replaced, never written into.
        mapped.seek(0)
        assert mapped.read() == seen
    assert bed.plan().published
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    assert build(path, "m", HashCache())[0] == bed.manifest


def test_verify_finds_a_change_that_kept_size_and_time(bed: Bed) -> None:
    path = bed.publish() / "config.json"
    status = path.stat()
    path.write_text('{"architectures": ["LlamaForCausalLX"]}')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert bed.plan().published
    assert "was altered" in bed.plan(verify=True).damage[0]


def test_a_repair_that_was_cut_off_is_continued(bed: Bed) -> None:
    path = bed.publish()
    os.truncate(path / SHARDS[1], 500)
    path.rename(path.with_name(f"{path.name}.broken-1"))
    assert set(bed.plan().missing) == {SHARDS[1]}
    bed.publish()
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("shared", [True, False])
def test_a_source_on_the_node_is_copied_with_and_without_copy_file_range(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if not shared:
        monkeypatch.setattr(store.os, "copy_file_range", refuse)
    plan = bed.plan()
    bed.store.publish(plan, bed.source)
    assert build(plan.path, "m", HashCache())[0] == bed.manifest


def test_rsync_copies_exactly_the_missing_files(bed: Bed, tmp_path: Path) -> None:
    if not shutil.which("rsync"):
        pytest.fail("rsync is not installed: run `apt-get install rsync`")
    (bed.source / "not wanted.txt").write_text("x")
    (bed.source / "other").mkdir()
    (bed.source / "other" / "config.json").write_text("x")
    target = tmp_path / "target"
    options = [shlex.split(option)[0] for option in bed.plan().filters()]
    subprocess.run(["rsync", "-r", *options, f"{bed.source}/", str(target)], check=True)
    copied = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert copied == set(bed.manifest.files)
