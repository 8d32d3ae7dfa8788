# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models of this machine, with their manifests or all of their problems."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build, build_manifests
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import Source

from ..models.test_adapter_facts import write as write_adapter

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


def cut(root: Path) -> None:
    os.truncate(root / SHARDS[1], 1000)


def test_the_manifest_has_all_files_but_hidden_files_and_an_old_manifest(
    tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    root = write_model(tmp_path / "m")
    (root / ".gitattributes").write_text("x")
    (root / ".cache").mkdir()
    (root / ".cache" / "x.safetensors").write_text("x")
    (root / "manifest.json").write_text("of the store")
    found = manifest_of(root)
    assert set(found.files) == {"config.json", "templates/chat [1].jinja", INDEX, *SHARDS}
    assert found.weight_bytes == 8000
    assert found.bytes == sum((root / name).stat().st_size for name in found.files)
    config = (root / "config.json").read_bytes()
    assert found.files["config.json"] == File(len(config), hashlib.sha256(config).hexdigest())


def test_all_problems_of_a_model_are_reported_at_once(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    root = write_model(tmp_path / "m")
    (root / "config.json").unlink()
    (root / SHARDS[0]).unlink()
    cut(root)
    assert len(problems_of(root)) == 3


@pytest.mark.parametrize(("name", "message"), [("none", "does not exist"), ("file", "is not a directory")])
def test_a_source_that_is_no_directory_is_a_problem(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_text("x")
    assert message in problems_of(tmp_path / name)[0]


def sources(**paths: Path) -> dict[str, Source]:
    return {name: Source("node", path) for name, path in paths.items()}


def test_each_model_has_its_manifest_or_its_problems(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    whole, broken = write_model(tmp_path / "whole"), write_model(tmp_path / "broken")
    (broken / "config.json").unlink()
    found = sources(whole=whole, broken=broken, gone=tmp_path / "gone")
    models: dict[str, dict[str, str]] = {name: {} for name in found}
    manifests, problems = build_manifests(found, models, HashCache())
    assert manifests == {"whole": manifest_of(whole)}
    assert [problem.where for problem in problems] == ["models.broken (node)", "models.gone (node)"]


def test_another_revision_than_the_pinned_one_is_a_problem(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    root = write_model(tmp_path / "m")
    revision = manifest_of(root).revision
    assert list(build_manifests(sources(m=root), {"m": {"revision": revision}}, HashCache())[0]) == ["m"]
    manifests, (problem,) = build_manifests(sources(m=root), {"m": {"revision": "0" * 12}}, HashCache())
    assert manifests == {} and (problem.key, problem.value) == ("revision", "0" * 12)
    assert f"{root} has revision {revision}: put the pinned revision there" in str(problem)


def test_a_file_that_cannot_be_read_is_a_problem(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> dict[Path, str]:
        raise OSError(5, "Input/output error", "/x/model.safetensors")

    monkeypatch.setattr(HashCache, "hashes", broken)
    (problem,) = problems_of(write_model(tmp_path / "m"))
    assert "Input/output error" in problem


def test_a_model_with_problems_is_not_hashed(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_model(tmp_path / "m")
    cut(root)
    monkeypatch.setattr(HashCache, "hashes", lambda *_given: pytest.fail("the files were read"))
    assert len(problems_of(root)) == 1


def test_files_are_read_again_only_to_verify_them(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    root, cache = write_model(tmp_path / "m"), HashCache()
    first = manifest_of(root, cache)
    status = (root / "config.json").stat()
    (root / "config.json").write_text('{"architectures": ["LlamaForCausalLX"]}')
    os.utime(root / "config.json", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert build_manifests(sources(m=root), {"m": {}}, cache)[0] == {"m": first}
    assert build_manifests(sources(m=root), {"m": {}}, cache, verify=True)[0] != {"m": first}


def test_an_adapter_needs_no_config_json_and_is_no_model(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    root = write_adapter(tmp_path / "legal")
    source = {"legal": Source("node", root)}
    entry = {"base": "large", "adapter": str(root), "model": str(root)}
    manifests, problems = build_manifests(source, {"legal": entry}, HashCache())
    assert not problems and set(manifests["legal"].files) == {"adapter_config.json", "adapter_model.safetensors"}
    # An adapter is no model, and a model is no adapter.
    _manifests, problems = build_manifests(source, {"legal": {"model": str(root)}}, HashCache())
    assert "config.json is missing: a model needs its configuration" in str(problems[0])
    model = {"legal": Source("node", write_model(tmp_path / "m"))}
    _manifests, problems = build_manifests(model, {"legal": entry}, HashCache())
    assert "adapter_config.json is missing" in str(problems[0]) and "adapter_model.safetensors is" in str(problems[1])
