# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The safetensors files of a model: the files that the engine loads, and their problems."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models import shards
from ansible_collections.baremetal.inference.plugins.module_utils.models.shards import INDEX, FileProblem, Shards

Write = Callable[..., None]
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def read(root: Path) -> Shards:
    """The shards of a directory, whose files may lie in folders."""
    return shards.read({str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()})


@pytest.fixture
def model(tmp_path: Path, write_model: Callable[..., Path]) -> Path:
    """A complete model of two shards and an index."""
    return write_model(tmp_path / "model")


def test_a_complete_model_has_no_problem(model: Path) -> None:
    found = read(model)
    assert (found.problems, found.missing, found.cut) == ([], [], [])
    assert found.wanted == [FIRST, SECOND]
    assert set(found.loaded) == {FIRST, SECOND}
    assert {name: tensor.shape for name, tensor in found.tensors.items()} == {"a": (1000,), "b": (1000,)}


def test_a_missing_shard_of_the_index_is_a_problem(model: Path) -> None:
    (model / SECOND).unlink()
    found = read(model)
    assert (found.missing, found.wanted, set(found.loaded)) == ([SECOND], [FIRST, SECOND], {FIRST})
    assert found.problems == [FileProblem(SECOND, f"is missing: {INDEX} names it; fetch it again")]


def test_a_cut_shard_counts_as_cut_and_a_damaged_shard_does_not(model: Path) -> None:
    (model / FIRST).write_bytes((model / FIRST).read_bytes()[:-1])
    (model / SECOND).write_bytes(b"\xff" * 100)
    found = read(model)
    assert (found.cut, found.headers, found.missing) == ([FIRST], {}, [])
    assert [problem.file for problem in found.problems] == [FIRST, SECOND]


def test_a_shard_without_a_tensor_of_the_index_is_a_problem(model: Path, write_safetensors: Write) -> None:
    write_safetensors(model / SECOND, {"c": 1000})
    (problem,) = read(model).problems
    assert problem == FileProblem(SECOND, f"lacks 1 tensor that {INDEX} names, such as b; fetch it again")


def test_a_file_that_the_index_does_not_name_is_not_loaded(model: Path, write_safetensors: Write) -> None:
    write_safetensors(model / "extra.safetensors", {"x": 10})
    found = read(model)
    assert (found.problems, found.wanted) == ([], [FIRST, SECOND])
    assert ("extra.safetensors" in found.headers, "x" in found.tensors) == (True, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON: "),
        ("[]", "must be a dictionary, found list"),
        ("{}", "names no shard: its weight_map is missing or empty"),
        (json.dumps({"weight_map": []}), "names no shard: its weight_map is missing or empty"),
    ],
)
def test_an_index_that_names_no_shard_is_a_problem(text: str, message: str, model: Path) -> None:
    (model / INDEX).write_text(text)
    found = read(model)
    assert found.wanted == []
    (problem,) = found.problems
    assert (problem.file, problem.message.startswith(message)) == (INDEX, True)


def test_without_an_index_the_files_of_the_directory_itself_count(tmp_path: Path, write_safetensors: Write) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.safetensors", "a.safetensors", "sub/c.safetensors"):
        write_safetensors(tmp_path / name, {name[0]: 10})
    assert read(tmp_path).wanted == ["a.safetensors", "b.safetensors"]
    assert read(tmp_path).problems == []


def test_consolidated_weights_count_only_without_other_weights(tmp_path: Path, write_safetensors: Write) -> None:
    write_safetensors(tmp_path / "consolidated.safetensors", {"a": 10})
    assert read(tmp_path).wanted == ["consolidated.safetensors"]
    write_safetensors(tmp_path / "model.safetensors", {"a": 10})
    assert read(tmp_path).wanted == ["model.safetensors"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "contains no weights: expected *.safetensors, found none"),
        (["b.bin", "a.gguf"], "contains no weights: expected *.safetensors, found only a.gguf, b.bin, convert it"),
    ],
)
def test_the_problem_of_a_model_without_safetensors_names_weights_of_other_formats(
    names: list[str], message: str, tmp_path: Path
) -> None:
    for name in ["config.json", *names]:
        (tmp_path / name).write_text("{}")
    assert read(tmp_path).problems == [FileProblem("", message)]


def test_json_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"a": 1}')
    assert shards.read_json(tmp_path / "good.json") == ({"a": 1}, "")
    (tmp_path / "broken.json").write_text("{")
    value, problem = shards.read_json(tmp_path / "broken.json")
    assert (value, problem.startswith("is not JSON: ")) == ({}, True)


def test_the_problem_of_a_file_that_cannot_be_read_has_the_reason(tmp_path: Path) -> None:
    assert shards.read_json(tmp_path / "gone.json") == ({}, "cannot be read: No such file or directory")
    (problem,) = shards.read({"a.safetensors": tmp_path / "a.safetensors"}).problems
    assert problem == FileProblem("a.safetensors", "cannot be read: No such file or directory")
