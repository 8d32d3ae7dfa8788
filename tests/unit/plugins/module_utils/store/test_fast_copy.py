# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies on a faster disk: complete or missing, and dropped in order. A full disk is no error."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB, human
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import INFO, MANIFEST, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fast_copy, store
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room, copy_target
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.references import Revision

SHARD = "model-00001-of-00002.safetensors"


class Bed:
    """A store with models a, b and c of one size, and a fast disk."""

    def __init__(self, root: Path, publish_model: Callable[..., Path]) -> None:
        self.store, self.fast = root / "store", root / "fast"
        self.places: dict[str, dict[str, str]] = {}
        self.needed: set[Revision] | None = set()
        for fill, name in enumerate("abc"):
            path = publish_model(self.store, name, fill + 1)
            self.places[name] = {"path": str(path), "revision": path.name}
            self.size = Manifest.from_dict(json.loads((path / MANIFEST).read_text())).bytes

    def revision(self, name: str) -> Revision:
        return name, self.places[name]["revision"]

    def link(self, name: str) -> Path:
        return self.fast.joinpath(*self.revision(name))

    def copy(self, name: str) -> Path:
        return self.fast.joinpath(".copies", *self.revision(name))

    def copied(self, name: str) -> bool:
        """Whether an engine gets the copy; otherwise it gets the store's files."""
        real = self.link(name).resolve()
        if real != self.copy(name).resolve():
            assert real == Path(self.places[name]["path"])
            return False
        assert gather(self.link(name)).problems == ()
        return True

    def age(self, *names: str) -> None:
        """Set the times at which copies were last used, in this order."""
        for day, name in enumerate(names, 1):
            os.utime(self.copy(name) / MANIFEST, (day * 86400, day * 86400))

    def fast_store(self) -> FastStore:
        return FastStore(self.fast, self.store, HashCache())

    def run(
        self, *names: str, check: bool = False, limit_gib: float = 0, reserve_gib: float = 0, copies: bool = True
    ) -> dict[str, Any]:
        """What is copied and dropped, as the module model_fast_copy returns it."""
        fast = self.fast_store()
        room = Room(round(limit_gib * GIB), round(reserve_gib * GIB), copies)
        outlook = fast.outlook([self.revision(name) for name in names], self.needed, room)
        made = [*outlook.plans, *outlook.unknown]
        failed = {} if check else fast.apply(outlook)
        made = [each for each in made if each not in failed]
        return {
            "changed": outlook.changes if check else bool(made or outlook.links or outlook.drops),
            "copied": [str(fast.place(each)) for each in made],
            "dropped": [str(fast.place(each)) for each in outlook.drops],
            "notes": [*outlook.notes, *failed.values()],
        }


@pytest.fixture
def bed(tmp_path: Path, publish_model: Callable[..., Path]) -> Bed:
    return Bed(tmp_path, publish_model)


def limit(bed: Bed, copies: float) -> float:
    return copies * bed.size / GIB


def test_a_damaged_copy_is_made_anew_from_the_store(bed: Bed) -> None:
    bed.run("a")
    shard = bed.copy("a") / SHARD
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    result = bed.run("a")
    assert result["copied"] == [str(bed.link("a"))]
    assert bed.copied("a")
    assert shard.read_bytes() == (Path(bed.places["a"]["path"]) / SHARD).read_bytes()


def test_a_full_disk_is_a_warning_with_the_needed_and_the_free_bytes(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_copy, "free_bytes", lambda path: bed.size - 1)
    result = bed.run("a")
    assert not bed.copied("a")
    (note,) = result["notes"]
    assert "engines load it from the store: the copy needs 8." in note
    assert f"has only {(bed.size - 1) / 1024:.1f} KiB free" in note
    assert not bed.run("a")["changed"]
    monkeypatch.setattr(fast_copy, "free_bytes", lambda path: bed.size + 10)
    assert not bed.run("a", reserve_gib=20 / GIB)["changed"]
    assert bed.run("a", reserve_gib=10 / GIB)["changed"]
    assert bed.copied("a")


def test_a_disk_that_fills_up_during_a_copy_has_no_part_of_the_copy(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path, size: int) -> None:
        target.write_bytes(b"begun")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(store, "_copy", full)
    result = bed.run("a")
    assert "No space left on device" in result["notes"][0]
    assert not bed.copied("a")
    assert list((bed.fast / ".copies" / ".incoming").iterdir()) == []


def test_a_source_that_differs_from_the_manifest_is_not_copied(bed: Bed) -> None:
    shard = Path(bed.places["a"]["path"]) / SHARD
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + b"x")
    assert "arrived wrong" in bed.run("a")["notes"][0]
    assert not bed.copied("a")
    shard.write_bytes(content)
    assert bed.run("a")["changed"]
    assert bed.copied("a")


def test_the_least_recently_used_copy_is_dropped_first(bed: Bed) -> None:
    bed.run("a", "b")
    bed.age("b", "a")
    predicted = bed.run("c", check=True, limit_gib=limit(bed, 2))
    result = bed.run("c", limit_gib=limit(bed, 2))
    assert predicted["dropped"] == result["dropped"] == [str(bed.link("b"))]
    assert [bed.copied(name) for name in "abc"] == [True, False, True]
    assert not bed.run("c", limit_gib=limit(bed, 2))["changed"]


def test_a_copy_that_a_run_wants_counts_as_used_by_that_run(bed: Bed) -> None:
    bed.run("a", "b")
    bed.age("a", "b")
    bed.run("a")
    assert bed.run("c", limit_gib=limit(bed, 2))["dropped"] == [str(bed.link("b"))]


def test_a_smaller_limit_drops_copies_that_the_run_does_not_want(bed: Bed) -> None:
    bed.run("a", "b", "c")
    bed.age("a", "b", "c")
    assert bed.run("c", limit_gib=limit(bed, 1.5))["dropped"] == [str(bed.link("a")), str(bed.link("b"))]


def test_a_limit_below_the_size_of_a_copy_leaves_no_copy(bed: Bed) -> None:
    bed.run("a")
    (note,) = bed.run("c", limit_gib=limit(bed, 0.5))["notes"]
    # No instance needs the earlier copy, so that copy does not count.
    assert f"leave only {human(round(bed.size / 2))} of model_store_fast_limit_gib" in note
    # The limit is also below the size of the earlier copy, so this copy is dropped.
    assert not bed.copied("a")
    bed.run("a")
    assert bed.run("c", "b", limit_gib=limit(bed, 1))["copied"] == [str(bed.link("c"))]


def test_a_link_leads_to_the_copy_or_to_the_store(bed: Bed) -> None:
    assert bed.run("a", copies=False)["changed"]
    assert not bed.copied("a") and not bed.copy("a").exists()
    assert not bed.run("a", copies=False)["changed"]
    assert bed.run("a")["copied"] == [str(bed.link("a"))]
    assert os.readlink(bed.link("a")) == copy_target(bed.revision("a")) and bed.copied("a")
    # An existing copy is used, also if no copy would be made now.
    assert not bed.run("a", copies=False)["changed"]


def test_a_copy_that_is_or_may_be_needed_is_never_dropped(bed: Bed) -> None:
    bed.run("a", "b")
    bed.age("a", "b")
    bed.needed = {bed.revision("a"), bed.revision("b")}
    refused = bed.run("c", limit_gib=limit(bed, 2))
    assert refused["dropped"] == []
    assert "0 bytes of model_store_fast_limit_gib" in refused["notes"][0]
    bed.needed = None
    assert bed.run("c", limit_gib=limit(bed, 2))["dropped"] == []
    bed.needed = {bed.revision("a")}
    assert bed.run("c", limit_gib=limit(bed, 2))["dropped"] == [str(bed.link("b"))]


def test_the_copy_of_a_model_that_is_not_in_the_store_yet_is_predicted(bed: Bed) -> None:
    outlook = bed.fast_store().outlook([("d", "REVISION")], set(), Room(0, 0))
    assert outlook.unknown == [("d", "REVISION")] and outlook.changes


def test_a_directory_in_place_of_a_link_is_not_removed(bed: Bed) -> None:
    bed.link("a").mkdir(parents=True)
    with pytest.raises(InputError, match="is not a link, but must become a link"):
        bed.run("a")
    assert bed.link("a").is_dir()


def test_the_link_of_a_dropped_copy_leads_to_the_store_or_is_removed(bed: Bed) -> None:
    bed.run("a", "b")
    bed.fast_store().drop(bed.revision("a"))
    assert not bed.copied("a") and not bed.copy("a").exists()
    shutil.rmtree(bed.places["b"]["path"])
    bed.fast_store().drop(bed.revision("b"))
    assert not os.path.lexists(bed.link("b")) and not bed.copy("b").exists()


def test_a_variant_that_the_store_has_lost_is_dropped_as_a_whole(bed: Bed) -> None:
    place = bed.fast / "bot/0123456789ab"
    place.mkdir(parents=True)
    (place / INFO).write_text(json.dumps({"base": {"name": "a", "revision": bed.places["a"]["revision"]}}))
    assert bed.fast_store().revisions() == {("bot", "0123456789ab")}
    bed.fast_store().drop(("bot", "0123456789ab"))
    assert not place.exists()


def test_the_copies_on_the_fast_disk_have_their_sizes(bed: Bed) -> None:
    bed.run("a", "b")
    bed.run("c", copies=False)
    (bed.copy("a") / MANIFEST).write_text("{}")
    bed.age("b", "a")
    (bed.fast / "a/notes").symlink_to("/nowhere")
    held = bed.fast_store().held()
    assert list(held) == [bed.revision("b"), bed.revision("a")]
    # The copy with a damaged manifest is measured.
    assert held[bed.revision("b")] == bed.size
    measured = sum(path.lstat().st_size for path in bed.copy("a").rglob("*"))
    assert held[bed.revision("a")] == measured
    assert bed.fast_store().revisions() == {bed.revision(name) for name in "abc"}


def test_on_a_full_disk_only_as_many_copies_as_needed_are_dropped(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """No limit is set: the free bytes alone decide."""
    bed.run("a", "b")
    bed.age("b", "a")
    monkeypatch.setattr(fast_copy, "free_bytes", lambda path: 10)
    assert bed.run("c")["dropped"] == [str(bed.link("b"))]
    assert [bed.copied(name) for name in "abc"] == [True, False, True]
