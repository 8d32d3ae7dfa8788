# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of the hashes of files: known, changed, missing and damaged entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import hashes
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache


def manifest_of(root: Path, cache: HashCache | None = None, verify: bool = False) -> Manifest:
    found, problems = build(root, "models.x", cache or HashCache(), verify)
    assert not problems
    assert found
    return found


def test_a_file_in_the_cache_is_read_again_only_after_a_change_or_to_verify_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_model: Callable[..., Path]
) -> None:
    root, path = write_model(tmp_path / "m"), tmp_path / "cache" / "manifests.json"
    with hashes.hash_cache(path) as cache:
        first = manifest_of(root, cache)
    read: list[Path] = []
    plain = hashes._sha256

    def count(path: Path) -> str:
        read.append(path)
        return plain(path)

    monkeypatch.setattr(hashes, "_sha256", count)
    with hashes.hash_cache(path) as cache:
        assert manifest_of(root, cache) == first
    assert read == []
    (root / "config.json").write_text('{"architectures": ["MistralForCausalLM"]}')
    with hashes.hash_cache(path) as cache:
        assert manifest_of(root, cache) != first
    assert [item.name for item in read] == ["config.json"]
    with hashes.hash_cache(path) as cache:
        manifest_of(root, cache, verify=True)
    assert len(read) == 1 + len(first.files)


def test_the_cache_drops_missing_files_and_a_damaged_cache_is_empty(
    tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    root, path = write_model(tmp_path / "m"), tmp_path / "manifests.json"
    (root / "extra").write_text("x")
    with hashes.hash_cache(path) as cache:
        manifest_of(root, cache)
    (root / "extra").unlink()
    (root / "config.json").write_text("{}")
    with hashes.hash_cache(path) as cache:
        manifest_of(root, cache)
    assert str(root / "extra") not in json.loads(path.read_text())["files"]
    for damage in ["{", "[]", '{"schema": 1}', '{"schema": 9, "files": {"x": 1}}', '{"schema": 1, "files": 5}']:
        path.write_text(damage)
        with hashes.hash_cache(path) as cache:
            assert cache.entries == {}


def test_a_read_only_cache_is_not_written(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    path = tmp_path / "none" / "manifests.json"
    with hashes.hash_cache(path, read_only=True) as cache:
        manifest_of(write_model(tmp_path / "m"), cache)
    assert not path.parent.exists()


@pytest.mark.parametrize("entry", [5, "x", {}, [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, None]])
def test_a_file_with_a_damaged_entry_of_the_cache_is_read_again(
    tmp_path: Path, entry: object, write_model: Callable[..., Path]
) -> None:
    root, path = write_model(tmp_path / "m"), tmp_path / "manifests.json"
    config = root / "config.json"
    status = config.stat()
    if isinstance(entry, list):
        entry = [status.st_size, status.st_mtime_ns, status.st_ino, *entry[3:]]
    path.write_text(json.dumps({"schema": 1, "files": {str(config): entry}}))
    with hashes.hash_cache(path) as cache:
        assert manifest_of(root, cache) == manifest_of(root)
