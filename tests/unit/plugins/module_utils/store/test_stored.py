# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a model of the model registry lies in a store: pinned, in use, newest, or still to come."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import MANIFEST, base_of
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store import stored, variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import parse, record_source
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import NOT_KNOWN, Place
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel
from ansible_collections.baremetal.inference.plugins.module_utils.store.variant_files import PROMPT_FILE
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.store.variant_bed import Bed


@pytest.fixture
def bed(tmp_path: Path, write_model: Callable[..., Path]) -> Bed:
    return Bed(tmp_path, write_model)


def test_the_plan_finds_the_variant_of_this_prompt_and_this_policy(bed: Bed) -> None:
    place = stored.find(bed.root, bed.entry)
    assert (place.path, place.revision, place.files) == (bed.root / "bot/REVISION", None, bed.base)
    variants.publish(bed.root, bed.variant)
    place = stored.find(bed.root, bed.entry)
    assert (place.path, place.revision, place.files) == (bed.path, bed.variant.revision, bed.base)
    # A base will be published: the same revision again, because it is damaged, or another revision.
    place = stored.find(bed.root, bed.entry, coming=bed.base.name)
    assert (place.path, place.revision, place.files) == (bed.path, bed.variant.revision, None)
    place = stored.find(bed.root, bed.entry, coming="ffffffffffff")
    assert (place.path, place.revision, place.files) == (bed.root / "bot/REVISION", None, None)
    for changed in ({"system_prompt": "Be rude."}, {"system_prompt_policy": "always"}):
        other = Entry(**{**vars(bed.entry), **changed})
        assert stored.find(bed.root, other).revision is None


def test_a_model_with_a_prompt_of_its_own_is_a_further_revision_of_itself(
    tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    bed = Bed(tmp_path, write_model, name="base")
    variants.publish(bed.root, bed.variant)
    assert (bed.path.parent, base_of(bed.path), base_of(bed.base)) == (bed.base.parent, bed.base, None)
    assert stored.find(bed.root, bed.entry).path == bed.path
    plain = Entry("plain", "base", "controller:/base")
    assert stored.find(bed.root, plain).path == bed.base


ARCHIVE = "https://example.org/m.tar"


def published(store: Path, name: str, *revisions: str) -> list[Path]:
    """Revisions of a model in a store, each published a day after the one before."""
    paths = [store / name / revision for revision in revisions]
    for day, path in enumerate(paths, 1):
        path.mkdir(parents=True)
        (path / MANIFEST).write_text("{}")
        os.utime(path / MANIFEST, (day * 86400, day * 86400))
    return paths


def test_a_damaged_revision_that_a_repair_has_set_aside_does_not_count(tmp_path: Path) -> None:
    entry = Entry("m", "m", "controller:/m")
    published(tmp_path, "m", f"{'b' * 12}.broken-1700000000")
    assert stored.find(tmp_path, entry).revision is None
    (sound,) = published(tmp_path, "m", "a" * 12)
    assert stored.find(tmp_path, entry).path == sound


def test_a_pinned_revision_precedes_the_revision_in_use_and_the_newest(tmp_path: Path) -> None:
    old, mid, new = published(tmp_path, "m", "c" * 12, "b" * 12, "a" * 12)
    entry = Entry("m", "m", "controller:/m")
    assert stored.find(tmp_path, entry) == Place(new, new.name, new)
    assert stored.find(tmp_path, entry, in_use=mid.name) == Place(mid, mid.name, mid)
    assert stored.find(tmp_path, entry, in_use="d" * 12).path == new
    pinned = Entry("m", "m", "controller:/m", revision=old.name)
    assert stored.find(tmp_path, pinned, in_use=mid.name) == Place(old, old.name, old)


def test_the_files_of_a_revision_that_is_not_published_are_at_its_source_or_unknown(tmp_path: Path) -> None:
    source, store = tmp_path / "source", tmp_path / "store"
    pinned = Entry("m", "m", str(source), revision="c" * 12)
    assert stored.find(store, pinned) == Place(store / "m" / ("c" * 12), "c" * 12, None)
    source.mkdir()
    assert stored.find(store, pinned).files == source
    place = stored.find(store, Entry("m", "m", str(source)))
    assert place == Place(store / "m" / NOT_KNOWN, None, source)
    assert place.stored == StoredModel(str(store / "m" / NOT_KNOWN), NOT_KNOWN)
    assert stored.find(store, Entry("m", "m", "controller:/m")).files is None


def test_a_revision_that_will_be_published_is_not_read_from_the_store(tmp_path: Path) -> None:
    source, store = tmp_path / "source", tmp_path / "store"
    source.mkdir()
    (path,) = published(store, "m", "a" * 12)
    entry = Entry("m", "m", str(source))
    assert stored.find(store, entry, coming=path.name) == Place(path, path.name, source)
    assert stored.find(store, entry, coming=NOT_KNOWN) == Place(store / "m" / NOT_KNOWN, None, source)
    assert stored.find(store, Entry("m", "m", "controller:/m"), coming=path.name).files is None


def test_a_remote_model_is_the_recorded_revision(tmp_path: Path, publish_model: Callable[..., Path]) -> None:
    given = {"model": ARCHIVE, "checksum": f"sha256:{'7a' * 32}"}
    entry, remote = Entry("m", "m", ARCHIVE, checksum=given["checksum"]), parse(given)
    assert remote
    # A revision without a record came from another source.
    path = publish_model(tmp_path, "m")
    assert stored.find(tmp_path, entry, in_use=path.name) == Place(tmp_path / "m" / NOT_KNOWN, None, None)
    record_source(path.parent, remote, path.name)
    assert stored.find(tmp_path, entry) == Place(path, path.name, path)


def test_an_entry_with_a_wrong_checksum_still_has_its_published_revision(tmp_path: Path) -> None:
    (path,) = published(tmp_path, "m", "a" * 12)
    assert stored.find(tmp_path, Entry("m", "m", ARCHIVE, checksum="md5:7a")).path == path


def test_a_variant_without_its_prompt_does_not_count(bed: Bed) -> None:
    variants.publish(bed.root, bed.variant)
    (bed.path / PROMPT_FILE).unlink()
    assert stored.find(bed.root, bed.entry).revision is None
