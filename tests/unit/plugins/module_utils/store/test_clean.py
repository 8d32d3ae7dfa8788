# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cleaning removes and what stays: revisions, fast copies, transfers and damaged directories."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import Mount
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import MANIFEST
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store import variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.clean import Cleaning, check
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.references import Revision
from ansible_collections.baremetal.inference.plugins.module_utils.store.variant_files import plan

DAY = 86400


class Bed:
    """A store with four revisions of model m, the oldest first, each published a day after the one before."""

    def __init__(self, root: Path, publish_model: Callable[..., Path]) -> None:
        self.root = root
        self.store, self.fast = root / "store", root / "fast"
        self.containers = ""
        self.needed: dict[Revision, str] = {}
        self.revisions = [publish_model(self.store, "m", fill) for fill in range(1, 5)]
        for day, path in enumerate(self.revisions, 1):
            self.published(path, day)

    def published(self, path: Path, day: int) -> None:
        os.utime(path / MANIFEST, (day * DAY, day * DAY))

    def left(self) -> list[int]:
        """The numbers of the revisions that are still in the store, from 0."""
        return [number for number, path in enumerate(self.revisions) if path.is_dir()]

    def release(self, path: Path) -> None:
        """Record that a kept release needs a revision."""
        self.needed[(path.parent.name, path.name)] = "release 1 of main"

    def run(
        self, check: bool = False, keep: int = 1, fast_path: str = "", models: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The removed and the kept items, as the module model_clean returns them."""
        fast = FastStore(Path(fast_path), self.store, HashCache()) if fast_path else None
        cleaning = Cleaning(self.store, fast)
        cleaning.plan(keep, self.needed, self.containers, models)
        if not check:
            cleaning.apply()
        freed, kept = ([vars(item) for item in items] for items in (cleaning.freed, cleaning.kept))
        return {"changed": bool(freed), "freed": freed, "kept": kept}


@pytest.fixture
def bed(tmp_path: Path, publish_model: Callable[..., Path]) -> Bed:
    return Bed(tmp_path, publish_model)


def reasons(result: dict[str, Any]) -> dict[str, str]:
    return {Path(item["path"]).name: item["why"] for item in result["kept"]}


def test_the_base_of_a_variant_stays_as_long_as_the_variant(bed: Bed) -> None:
    entry = Entry("bot", "m", "controller:/m", system_prompt="Be kind.")
    for number, day in ((0, 1), (1, 2)):
        wanted = plan("bot", variants.read_base(entry, bed.revisions[number]), "Be kind.", "default", {})
        variants.publish(bed.store, wanted)
        bed.published(bed.store / "bot" / wanted.revision, day)
    result = bed.run()
    assert bed.left() == [1, 3]
    assert reasons(result)[bed.revisions[1].name].startswith("the base of bot/")
    assert len(list((bed.store / "bot").glob("[0-9a-f]*"))) == 1


def test_directories_that_the_store_has_not_published_stay(bed: Bed) -> None:
    (bed.revisions[0] / MANIFEST).unlink()
    elsewhere = bed.root / "elsewhere"
    bed.revisions[1].rename(elsewhere)
    bed.revisions[1].symlink_to(elsewhere)
    (bed.store / "m" / "notes").mkdir()
    bed.run()
    assert bed.left() == [0, 1, 3]
    assert (bed.store / "m" / "notes").is_dir()


def test_a_fast_copy_is_removed_with_its_revision(bed: Bed) -> None:
    fast = FastStore(bed.fast, bed.store, HashCache())
    wanted = [(path.parent.name, path.name) for path in bed.revisions]
    fast.apply(fast.outlook(wanted, {}, Room(0, 0)))
    bed.release(fast.place(wanted[1]))
    predicted = bed.run(check=True, fast_path=str(bed.fast))
    result = bed.run(fast_path=str(bed.fast))
    assert predicted["freed"] == result["freed"]
    assert [fast.place(revision).is_dir() for revision in wanted] == [False, True, False, True]
    assert [os.path.lexists(fast.place(revision)) for revision in wanted] == [False, True, False, True]
    assert sorted(path.name for path in (bed.fast / ".copies" / "m").iterdir()) == sorted([wanted[1][1], wanted[3][1]])
    assert not bed.run(fast_path=str(bed.fast))["changed"]


def test_a_needed_fast_copy_of_a_revision_that_the_store_has_lost_stays(bed: Bed) -> None:
    fast = FastStore(bed.fast, bed.store, HashCache())
    lost = ("m", bed.revisions[0].name)
    fast.apply(fast.outlook([lost], {}, Room(0, 0)))
    shutil.rmtree(bed.revisions[0])
    bed.release(fast.place(lost))
    bed.run(fast_path=str(bed.fast))
    assert (fast.place(lost) / "config.json").is_file()


def test_a_stopped_transfer_is_removed_after_a_day(bed: Bed) -> None:
    incoming = bed.store / ".incoming"
    old = time.time() - 2 * DAY
    for name in ("m-ab12cd34ef56", "n-ab12cd34ef56.removed", "fresh.ab12cd34ef56", "held.ab12cd34ef56"):
        (incoming / name / "model").mkdir(parents=True)
        (incoming / name / "model" / "half").write_text("half")
        for path in (incoming / name / "model" / "half", incoming / name / "model", incoming / name):
            os.utime(path, (old, old))
    (incoming / "fresh.ab12cd34ef56" / "model" / "half").write_text("more")
    bed.containers = f'[{{"Source": "{incoming}/held.ab12cd34ef56/model"}}]'
    result = bed.run(keep=4)
    assert [item["why"] for item in result["freed"]] == [
        "a transfer that stopped 2 days ago",
        "a removal that stopped 2 days ago",
    ]
    assert sorted(path.name for path in incoming.iterdir()) == ["fresh.ab12cd34ef56", "held.ab12cd34ef56"]


def test_a_file_that_disappears_during_the_plan_is_no_error(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    half = bed.store / ".incoming/m.ab12cd34ef56/model/half"
    half.parent.mkdir(parents=True)
    half.write_text("half")
    for name in ("stat", "lstat"):
        status = getattr(os, name)

        def gone(path: Any, *words: Any, found: Callable[..., Any] = status, **more: Any) -> Any:
            if Path(path).name == "half":
                raise FileNotFoundError(path)
            return found(path, *words, **more)

        monkeypatch.setattr(os, name, gone)
    assert not bed.run(check=True, keep=4)["freed"]


def test_a_damaged_revision_is_removed_once_it_is_replaced(bed: Bed) -> None:
    when = int(time.time())
    done = bed.revisions[3].with_name(f"{bed.revisions[3].name}.broken-{when - 2 * DAY}")
    open_ = bed.revisions[3].with_name(f"0123456789ab.broken-{when - 2 * DAY}")
    fresh = bed.revisions[3].with_name(f"{bed.revisions[3].name}.broken-{when}")
    for path in (done, open_, fresh):
        path.mkdir()
    bed.run(keep=4)
    assert [path.is_dir() for path in (done, open_, fresh)] == [False, True, True]


def test_only_bytes_that_a_removal_frees_count(bed: Bed) -> None:
    """A file that has another name frees nothing, and a link frees only itself."""
    shard = bed.revisions[0] / "model-00001-of-00002.safetensors"
    before = bed.run(check=True)["freed"][-1]["bytes"]
    os.link(shard, bed.root / "another-name")
    assert bed.run(check=True)["freed"][-1]["bytes"] == before - shard.stat().st_size
    (bed.revisions[0] / "link").symlink_to(bed.revisions[3])
    assert bed.run(check=True)["freed"][-1]["bytes"] == before - shard.stat().st_size


def test_only_the_named_models_are_cleaned(bed: Bed) -> None:
    assert bed.run(models=["other"])["freed"] == []
    assert bed.left() == [0, 1, 2, 3]
    bed.run(keep=0, models=["m"])
    assert bed.left() == []


def test_a_removal_that_was_cut_off_is_continued(bed: Bed) -> None:
    """A removal first renames the revision. A renamed directory of an earlier run is removed as well."""
    aside = bed.store / ".incoming" / f"m-{bed.revisions[0].name}.removed"
    (aside / "templates").mkdir(parents=True)
    bed.run()
    assert bed.left() == [3] and not aside.exists()


def on(*kinds: tuple[str, str]) -> list[Mount]:
    return [Mount("8:1", "/", path, kind, "/dev/sda") for path, kind in kinds]


@pytest.mark.parametrize(
    "mounts",
    [
        on(("/", "ext4"), ("/mnt", "nfs4")),
        on(("/", "ext4"), ("/mnt/models", "xfs"), ("/mnt/models", "ceph")),
        on(("/", "fuse.glusterfs")),
        on(("/", "9p")),
    ],
)
def test_a_store_on_a_disk_that_other_nodes_may_use_is_refused(mounts: list[Mount]) -> None:
    with pytest.raises(InputError, match="which other nodes may use, too"):
        check(Path("/mnt/models"), 1, mounts)


@pytest.mark.parametrize(
    "mounts",
    [
        on(("/", "nfs4"), ("/mnt/models", "xfs"), ("/mnt/models-2", "nfs4")),
        on(("/", "nfs4"), ("/mnt", "nfs4"), ("/mnt", "ext4")),
        [],
    ],
)
def test_a_store_on_a_disk_of_the_node_is_allowed(mounts: list[Mount]) -> None:
    check(Path("/mnt/models"), 1, mounts)
    with pytest.raises(InputError, match="must be 1 or more"):
        check(Path("/mnt/models"), 0, mounts)


def test_a_link_into_a_store_that_has_lost_the_revision_is_removed(bed: Bed) -> None:
    """There is no copy: only the link is removed, which frees nothing."""
    fast = FastStore(bed.fast, bed.store, HashCache())
    lost = ("m", bed.revisions[0].name)
    fast.apply(fast.outlook([lost], {}, Room(0, 0, copies=False)))
    shutil.rmtree(bed.revisions[0])
    (item,) = bed.run(keep=4, fast_path=str(bed.fast))["freed"]
    assert (item["path"], item["bytes"]) == (fast.place(lost), 0)
    assert not os.path.lexists(fast.place(lost))
