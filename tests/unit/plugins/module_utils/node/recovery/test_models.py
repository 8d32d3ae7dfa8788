# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of a model's files, and the links that lead from a damaged fast copy to the store."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    Release,
    Settings,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import INFO, File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import models
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..conftest import write

WEIGHTS = b"weights"


class Disks:
    """A store and its fast copies, with a model in both."""

    def __init__(self, root: Path) -> None:
        self.store, self.fast = root / "models", root / "nvme/models"
        self.manifest = Manifest({"w.safetensors": File(len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())}, 4)
        self.revision = ("a", self.manifest.revision)
        self.whole = self.store.joinpath(*self.revision)
        self.whole.mkdir(parents=True)
        (self.whole / "w.safetensors").write_bytes(WEIGHTS)
        files.write_json(self.whole / "manifest.json", self.manifest.to_dict())
        fast = FastStore(self.fast, self.store, HashCache())
        self.fast.mkdir(parents=True)
        fast.apply(fast.outlook([self.revision], None, Room(0, 0)))
        self.link = self.fast.joinpath(*self.revision)
        self.copy = Path(os.path.realpath(self.link))
        assert self.copy.is_relative_to(self.fast / ".copies")

    def release(self, *revision: str) -> Release:
        instance = Instance(name="main", model="a", port=5005, accelerator="cpu")
        settings = Settings(store_path=str(self.store), fast_path=str(self.fast))
        stored = StoredModel(str(self.store.joinpath(*revision)), revision[-1])
        return render(instance, [], stored, "image", settings).release

    def variant(self) -> tuple[str, str]:
        """Publish a variant whose weights are a link to its base's weights. Returns its name and revision."""
        linked = Manifest({"w.safetensors": File(len(WEIGHTS), "00")}, 4)
        directory = self.fast / "v" / linked.revision
        directory.mkdir(parents=True)
        (directory / "w.safetensors").symlink_to(f"../../a/{self.revision[1]}/w.safetensors")
        files.write_json(directory / INFO, {"base": {"name": "a", "revision": self.revision[1]}})
        files.write_json(directory / "manifest.json", linked.to_dict())
        return "v", linked.revision


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


def test_a_link_leads_from_a_truncated_copy_to_the_store(disks: Disks) -> None:
    release = disks.release(*disks.revision)
    assert release.model_path == str(disks.link)
    assert models.find_damage(release) == []
    os.truncate(disks.copy / "w.safetensors", 3)
    (found,) = models.find_damage(release)
    assert found.fallback == models.Fallback(disks.link, disks.whole)
    (line,) = models.link_to_store([found])
    assert "w.safetensors has 3 bytes instead of 7" in line and str(disks.whole) in line
    assert os.path.realpath(disks.link) == str(disks.whole)
    assert models.find_damage(release) == []
    # site.yml repairs the copy, and then leads the link back to it.
    fast = FastStore(disks.fast, disks.store, HashCache())
    fast.apply(fast.outlook([disks.revision], None, Room(0, 0)))
    assert os.path.realpath(disks.link) == str(disks.copy)
    assert models.find_damage(release) == []


def test_a_link_leads_from_a_missing_copy_to_the_store(disks: Disks) -> None:
    shutil.rmtree(disks.copy)
    models.link_to_store(models.find_damage(disks.release(*disks.revision)))
    assert models.find_damage(disks.release(*disks.revision)) == []


@pytest.mark.parametrize("link_is_readable", [True, False])
def test_a_copy_on_a_disk_with_errors_has_a_fallback_if_its_link_can_be_read(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, link_is_readable: bool
) -> None:
    stat = Path.stat

    def broken(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        of_copy = follow_symlinks and Path(os.path.realpath(path)).is_relative_to(disks.copy)
        if of_copy or (path == disks.link and not link_is_readable):
            raise OSError(errno.EIO, "Input/output error")
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", broken)
    (found,) = models.find_damage(disks.release(*disks.revision))
    assert str(found) == f"{disks.link} cannot be read: Input/output error"
    assert found.fallback == (models.Fallback(disks.link, disks.whole) if link_is_readable else None)


@pytest.mark.parametrize("harm", [lambda file: os.truncate(file, 3), Path.unlink])
def test_a_variant_reads_the_store_by_the_link_of_its_base(disks: Disks, harm: object) -> None:
    release = disks.release(*disks.variant())
    assert models.find_damage(release) == []
    harm(disks.copy / "w.safetensors")  # type: ignore[operator]
    (found,) = models.find_damage(release)
    assert found.fallback == models.Fallback(disks.link, disks.whole)
    models.link_to_store([found])
    assert models.find_damage(release) == []


def test_two_damaged_files_of_one_copy_need_one_link(disks: Disks) -> None:
    fallback = models.Fallback(disks.link, disks.whole)
    found = [models.Damage(disks.copy / name, "is cut", fallback) for name in ("x", "y")]
    (line,) = models.link_to_store(found)
    assert "x is cut" in line and "y is cut" in line


def test_a_store_that_is_damaged_as_well_is_no_fallback(disks: Disks) -> None:
    os.truncate(disks.copy / "w.safetensors", 3)
    os.truncate(disks.whole / "w.safetensors", 3)
    (found,) = models.find_damage(disks.release(*disks.revision))
    assert found.fallback is None
    assert models.link_to_store([found]) == []
    assert os.path.realpath(disks.link) == str(disks.copy)


def test_an_engine_that_reads_the_store_has_no_fallback(disks: Disks) -> None:
    disks.link.unlink()
    disks.link.symlink_to(disks.whole)
    os.truncate(disks.whole / "w.safetensors", 3)
    assert models.find_damage(disks.release(*disks.revision))[0].fallback is None


def test_a_truncated_model_file_is_named(paths: Paths) -> None:
    release = releases.load(paths, "main", 1)
    root = Path(release.model_path)
    assert models.find_damage(release) == []
    (root / "model.safetensors").write_bytes(b"12345678")
    (root / "manifest.json").write_text(json.dumps(Manifest({"model.safetensors": File(8, "ab")}, 4).to_dict()))
    assert models.find_damage(release) == []
    os.truncate(root / "model.safetensors", 5)
    (found,) = models.find_damage(release)
    assert str(found) == f"{root}/model.safetensors has 5 bytes instead of 8"
    (root / "model.safetensors").unlink()
    assert "cannot be read" in str(models.find_damage(release)[0])


def test_a_model_outside_the_store_must_only_exist(paths: Paths) -> None:
    release = releases.load(paths, "main", 1)
    assert models.find_damage(release) == []
    Path(release.model_path).rmdir()
    assert str(models.find_damage(release)[0]) == f"{release.model_path} is missing: is its disk mounted?"


def test_a_manifest_that_is_damaged_is_named(paths: Paths) -> None:
    release = releases.load(paths, "main", 1)
    write(Path(release.model_path) / "manifest.json", "{")
    assert "manifest.json cannot be used" in str(models.find_damage(release)[0])


@pytest.mark.parametrize("kind", ["adapter", "draft"])
def test_a_damaged_file_of_an_adapter_or_a_draft_is_named(disks: Disks, tmp_path: Path, kind: str) -> None:
    model = tmp_path / "elsewhere/m/r"
    model.mkdir(parents=True)
    beside = {"lora": {"legal": str(disks.link)}} if kind == "adapter" else {"draft": str(disks.link)}
    release = replace(disks.release(*disks.revision), model_path=str(model), **beside)
    assert models.find_damage(release) == []
    os.truncate(disks.copy / "w.safetensors", 3)
    (found,) = models.find_damage(release)
    assert str(found) == f"{disks.link}/w.safetensors has 3 bytes instead of 7"
    assert found.fallback == models.Fallback(disks.link, disks.whole)
    models.link_to_store([found])
    assert models.find_damage(release) == []
    shutil.rmtree(disks.whole)
    assert [str(one) for one in models.find_damage(release)] == [f"{disks.link} is missing: is its disk mounted?"]
