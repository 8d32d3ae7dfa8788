# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a model: its files, its revision, and the problems of its directory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import (
    File,
    Manifest,
    base_of,
    find_files,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache

INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def problems_of(root: Path) -> list[str]:
    found, problems = build(root, "models.x", HashCache())
    assert (found is None) == bool(problems)
    return [str(problem) for problem in problems]


def manifest_of(root: Path, cache: HashCache | None = None, verify: bool = False) -> Manifest:
    found, problems = build(root, "models.x", cache or HashCache(), verify)
    assert not problems
    assert found
    return found


def test_a_revision_depends_only_on_content_and_names(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    one, two = write_model(tmp_path / "one"), write_model(tmp_path / "two")
    os.utime(two / "config.json", (1, 1))
    revision = manifest_of(one).revision
    assert len(revision) == 12
    assert manifest_of(two).revision == revision
    (two / "templates" / "chat [1].jinja").rename(two / "chat.jinja")
    assert manifest_of(two).revision != revision


def test_a_manifest_is_read_back_from_json(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    found = manifest_of(write_model(tmp_path / "m"))
    assert Manifest.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema 2"),
        ({"files": None}, "not a manifest"),
        ({"revision": "000000000000"}, "was edited"),
        ({"files": {}}, "was edited"),
    ],
)
def test_an_edited_or_foreign_manifest_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str, write_model: Callable[..., Path]
) -> None:
    data = manifest_of(write_model(tmp_path / "m")).to_dict()
    with pytest.raises(ValueError, match=message):
        Manifest.from_dict({**data, **change})


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../b"])
def test_a_manifest_with_a_path_outside_of_the_model_is_refused(path: str) -> None:
    data = Manifest({path: File(1, "0" * 64)}, 0).to_dict()
    with pytest.raises(ValueError, match="outside of the model"):
        Manifest.from_dict(data)


def remove(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


def write(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / name).write_text(text)

    return change


def cut(root: Path) -> None:
    os.truncate(root / SHARDS[1], 1000)


def link(name: str, target: str) -> Callable[[Path], None]:
    return lambda root: (root / name).symlink_to(target)


def only_pickles(root: Path) -> None:
    for name in [INDEX, *SHARDS]:
        (root / name).unlink()
    (root / "pytorch_model.bin").write_text("x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("config.json"), "config.json is missing"),
        (write("config.json", "{"), "config.json is not JSON"),
        (write("config.json", "[]"), "config.json must be a dictionary, found list"),
        (write("config.json", "[" * 100_000), "config.json is not JSON"),
        (remove(SHARDS[0]), f"{SHARDS[0]} is missing: {INDEX} names it"),
        (cut, f"{SHARDS[1]} is cut: expected 4,1"),
        (write(INDEX, "{}"), "names no shard"),
        (write(INDEX, '{"weight_map": []}'), "names no shard"),
        (write(INDEX, f'{{"weight_map": {{"lost": "{SHARDS[0]}"}}}}'), "lacks 1 tensor"),
        (only_pickles, "found only pytorch_model.bin, convert it"),
        (link("x", "/etc/passwd"), "x is a link that leaves"),
        (link("x", "nowhere"), "x is a link to a missing file: nowhere"),
        (link("x", "x"), "x is a link to a missing file: x"),
        (link("d", "templates"), "d is a link to a directory"),
        (lambda root: os.mkfifo(root / "pipe"), "pipe is not a regular file"),
        (write("a\nb", ""), "unprintable name"),
    ],
)
def test_each_problem_of_a_directory_has_its_message_and_its_path(
    tmp_path: Path, change: Callable[[Path], None], message: str, write_model: Callable[..., Path]
) -> None:
    root = write_model(tmp_path / "m")
    change(root)
    problems = problems_of(root)
    assert len(problems) == 1
    assert message in problems[0]
    assert str(root) in problems[0]


def test_the_problem_of_a_directory_with_an_unprintable_name_has_escapes(
    tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    root = write_model(tmp_path / "m")
    (root / "a\nb").mkdir()
    (root / "a\nb" / "x.txt").touch()
    problem = f"{root} contains a file with an unprintable name: 'a\\nb/x.txt'; rename it"
    assert list(map(str, find_files(root, "models.x")[1])) == [f"models.x: {problem}"]


def test_a_file_that_is_removed_during_the_check_is_a_problem(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_model(tmp_path / "m")
    walk = os.walk

    def walk_and_remove(*given: Any, **more: Any) -> Iterator[Any]:
        for entry in walk(*given, **more):
            (root / "note.txt").unlink(missing_ok=True)
            yield entry

    (root / "note.txt").touch()
    monkeypatch.setattr(os, "walk", walk_and_remove)
    files, problems = find_files(root, "models.x")
    assert "config.json" in files and "note.txt" not in files
    assert list(map(str, problems)) == [f"models.x: {root}/note.txt: No such file or directory"]


def test_the_links_of_a_hub_cache_are_followed(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    plain = write_model(tmp_path / "plain")
    repository = tmp_path / "models--org--name"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    (snapshot / "templates").mkdir(parents=True)
    for number, name in enumerate(manifest_of(plain).files):
        (plain / name).rename(blobs / str(number))
        (snapshot / name).symlink_to(os.path.relpath(blobs / str(number), (snapshot / name).parent))
    expected = manifest_of(write_model(tmp_path / "again"))
    assert manifest_of(snapshot) == expected


def test_without_an_index_the_weights_of_a_model_count(tmp_path: Path, write_safetensors: Callable[..., None]) -> None:
    (tmp_path / "config.json").write_text("{}")
    write_safetensors(tmp_path / "model.safetensors", {"a": 10})
    assert manifest_of(tmp_path).weight_bytes == 40


def test_a_damaged_file_of_a_variant_names_no_base(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"base": 1}', "[" * 100_000):
        (tmp_path / "model_info.json").write_text(text)
        assert base_of(tmp_path) is None


@pytest.mark.parametrize(
    "base", [{"name": "base\n", "revision": "0" * 12}, {"name": "base", "revision": f"{'0' * 12}\n"}]
)
def test_a_name_or_a_revision_with_a_line_break_names_no_base(tmp_path: Path, base: dict[str, str]) -> None:
    (tmp_path / "model_info.json").write_text(json.dumps({"base": base}))
    assert base_of(tmp_path) is None


def test_a_fifo_names_no_base(tmp_path: Path) -> None:
    """The reader of a FIFO would wait for a writer."""
    os.mkfifo(tmp_path / "model_info.json")
    found: list[Path | None] = []
    reader = threading.Thread(target=lambda: found.append(base_of(tmp_path)), daemon=True)
    reader.start()
    reader.join(5)
    assert found == [None]


def test_a_size_that_no_file_has_is_no_manifest() -> None:
    data = {"schema": 1, "files": {"a": {"size": float("inf"), "sha256": "0"}}, "weight_bytes": 1, "revision": "0"}
    with pytest.raises(ValueError, match="is not a manifest: OverflowError"):
        Manifest.from_dict(data)
