# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_fast_copy: what it predicts, which copies it keeps, and its notes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import INFO, MANIFEST
from ansible_collections.baremetal.inference.plugins.module_utils.store import fast_copy
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store
from ansible_collections.baremetal.inference.plugins.modules import model_fast_copy

SHARD = "model-00001-of-00002.safetensors"


RunModule = Callable[..., dict[str, Any]]


class Bed:
    """A store with models a, b and c of one size, a fast disk, releases, and a fake of Docker."""

    def __init__(self, root: Path, write_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self.paths = Paths(root / "node")
        self.store, self.fast = root / "store", root / "fast"
        self.places: dict[str, dict[str, str]] = {}
        self.docker: tuple[int, str, str] = (0, "", "")
        for fill, name in enumerate("abc"):
            source = write_model(root / "source" / name, fill=fill + 1)
            manifest, _problems = build(source, name, HashCache())
            assert manifest
            plan = Store(self.store, HashCache()).plan(name, manifest)
            Store(self.store, HashCache()).publish(plan, source)
            self.places[name] = {"path": str(plan.path), "revision": manifest.revision}
            self.size = manifest.bytes

    def link(self, name: str) -> Path:
        return self.fast / name / self.places[name]["revision"]

    def copy(self, name: str) -> Path:
        return self.fast / ".copies" / name / self.places[name]["revision"]

    def copied(self, name: str) -> bool:
        """Whether an engine gets the copy; otherwise it gets the store's files."""
        real = self.link(name).resolve()
        if real != self.copy(name).resolve():
            assert real == Path(self.places[name]["path"])
            return False
        assert gather(self.link(name)).problems == ()
        return True

    def release(self, name: str, number: int = 1) -> None:
        """A kept release that names a model's link."""
        directory = self.paths.release("main", number)
        directory.mkdir(parents=True)
        (directory / "release.json").write_text(json.dumps({"model_path": str(self.link(name))}))

    def age(self, *names: str) -> None:
        """Set the times at which copies were last used, in this order."""
        for day, name in enumerate(names, 1):
            os.utime(self.copy(name) / MANIFEST, (day * 86400, day * 86400))

    def run(self, *names: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {
            "store": str(self.store),
            "fast_path": str(self.fast),
            "places": {name: self.places[name] for name in names},
            "cache": str(self.paths.state / "manifests.json"),
            **arguments,
        }
        return self._run(model_fast_copy, check, **given)


@pytest.fixture
def bed(
    tmp_path: Path,
    write_model: Callable[..., Path],
    run_module: RunModule,
    monkeypatch: pytest.MonkeyPatch,
) -> Bed:
    bed = Bed(tmp_path, write_model, run_module)
    monkeypatch.setattr(model_fast_copy, "Paths", lambda: bed.paths)
    monkeypatch.setattr(model_fast_copy, "same_file_system", lambda path, other: False)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: "/usr/bin/docker")
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda module, argv: bed.docker)
    return bed


def limit(bed: Bed, copies: float) -> float:
    return copies * bed.size / GIB


def test_check_mode_predicts_the_copies_and_the_second_run_copies_nothing(bed: Bed) -> None:
    predicted = bed.run("a", "b", check=True)
    planned = bed.run("a", "b", state="planned")
    assert (planned["due"], planned["changed"], planned["copied"]) == (True, False, predicted["copied"])
    assert not bed.fast.exists()
    result = bed.run("a", "b")
    assert predicted["changed"]
    assert predicted["copied"] == result["copied"] == [str(bed.link("a")), str(bed.link("b"))]
    assert bed.copied("a")
    assert bed.copied("b")
    assert result["notes"] == []
    again = bed.run("a", "b")
    assert (again["changed"], again["due"], again["copied"]) == (False, False, [])
    assert again["complete"] == result["copied"]


def test_a_model_that_is_not_in_the_store_yet_is_predicted(bed: Bed) -> None:
    bed.places["d"] = {"path": str(bed.store / "d" / "REVISION"), "revision": "REVISION"}
    result = bed.run("d", check=True)
    assert result["changed"]
    assert result["copied"] == [str(bed.fast / "d" / "REVISION")]


def test_on_the_stores_own_disk_there_are_only_links(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_fast_copy, "same_file_system", lambda path, other: True)
    assert bed.run("a")["changed"]
    assert not bed.copied("a")
    assert bed.link("a").is_dir()
    assert not bed.copy("a").exists()
    assert not bed.run("a")["changed"]


def test_a_copy_that_a_rollback_or_a_container_needs_is_never_dropped(bed: Bed) -> None:
    bed.run("a", "b")
    bed.release("a")
    bed.docker = (0, f'["vllm serve {bed.link("b")}"]', "")
    result = bed.run("c", limit_gib=limit(bed, 2))
    assert result["dropped"] == []
    assert "0 bytes of model_store_fast_limit_gib" in result["notes"][0]
    assert [bed.copied(name) for name in "abc"] == [True, True, False]
    bed.docker = (0, "", "")
    assert bed.run("c", limit_gib=limit(bed, 2))["dropped"] == [str(bed.link("b"))]
    assert [bed.copied(name) for name in "abc"] == [True, False, True]


def test_the_release_of_a_variant_needs_the_copy_of_the_base(bed: Bed) -> None:
    bed.run("a", "b")
    bed.age("a", "b")
    base = {"name": "a", "revision": bed.places["a"]["revision"]}
    bed.places["bot"] = {"path": str(bed.store / "bot/0123456789ab"), "revision": "0123456789ab"}
    variant = Path(bed.places["bot"]["path"])
    variant.mkdir(parents=True)
    (variant / INFO).write_text(json.dumps({"base": base}))
    bed.release("bot")
    assert bed.run("c", limit_gib=limit(bed, 2))["dropped"] == [str(bed.link("b"))]
    assert [bed.copied(name) for name in "abc"] == [True, False, True]


@pytest.mark.parametrize("silent", ["docker", "release"])
def test_nothing_is_dropped_if_the_needed_copies_are_unknown(bed: Bed, silent: str) -> None:
    bed.run("a")
    if silent == "docker":
        bed.docker = (1, "", "Cannot connect to the Docker daemon")
    else:
        bed.release("a")
        (bed.paths.release("main", 1) / "release.json").write_text("")
    result = bed.run("b", limit_gib=limit(bed, 1))
    assert result["dropped"] == []
    assert "it is unknown which are needed" in result["notes"][0]
    assert [bed.copied(name) for name in "ab"] == [True, False]


def test_a_directory_in_place_of_a_link_is_an_error(bed: Bed) -> None:
    bed.link("a").mkdir(parents=True)
    result = bed.run("a")
    assert result["failed"]
    assert "is not a link, but must become a link" in result["msg"]


def test_a_lack_of_space_and_a_copy_that_fails_are_notes(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_copy, "free_bytes", lambda path: bed.size + 10)
    short = bed.run("a", reserve_gib=20 / GIB)
    assert "20 bytes must stay free" in short["notes"][0] and short["copied"] == []
    shard = Path(bed.places["a"]["path"]) / SHARD
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    (note,) = bed.run("a", reserve_gib=10 / GIB)["notes"]
    assert note.startswith(f"a {bed.places['a']['revision']} has no fast copy and is served from the store: ")
    assert "arrived wrong" in note
