# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model: describes, plans, publishes and removes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import model
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")

RunModule = Callable[..., dict[str, Any]]


class Bed:
    """Two models, one on the controller and one on the node, and a store."""

    def __init__(self, root: Path, write_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self.store = root / "store"
        self.far, self.near = write_model(root / "far"), write_model(root / "near", fill=9)
        self.models = {"far": {"model": f"controller:{self.far}"}, "near": {"model": str(self.near)}}
        manifest, _problems = build(self.far, "far", HashCache())
        assert manifest
        self.manifests = {"far": manifest.to_dict()}

    def run(self, **arguments: Any) -> dict[str, Any]:
        given = {
            "store": str(self.store),
            "models": self.models,
            "manifests": self.manifests,
            "cache": str(self.store.parent / "state" / "manifests.json"),
            **arguments,
        }
        return self._run(model, **given)

    def bring(self) -> None:
        for item in self.run(state="planned")["copies"]:
            shutil.copytree(item["source"], item["incoming"], dirs_exist_ok=True)


@pytest.fixture
def bed(tmp_path: Path, write_model: Callable[..., Path], run_module: RunModule) -> Bed:
    return Bed(tmp_path, write_model, run_module)


def test_a_plan_changes_nothing(bed: Bed) -> None:
    result = bed.run(state="planned", check=True)
    assert not result["changed"]
    assert [(item["name"], item["origin"], item["files"]) for item in result["transfers"]] == [
        ("far", "controller", 5),
        ("near", "node", 5),
    ]
    assert [item["name"] for item in result["copies"]] == ["far"]
    assert result["coming"] == {name: result["places"][name]["revision"] for name in ("far", "near")}
    assert result["places"]["far"] == {
        "path": str(bed.store / "far" / bed.manifests["far"]["revision"]),
        "revision": bed.manifests["far"]["revision"],
        "weight_bytes": 8000,
        "bytes": bed.manifests["far"]["bytes"],
    }
    assert sorted(path.name for path in bed.store.parent.iterdir()) == ["far", "near"]


def test_models_are_published_once_as_check_mode_predicts(bed: Bed) -> None:
    bed.bring()
    predicted = bed.run(check=True)
    result = bed.run()
    assert predicted["changed"]
    assert result["changed"]
    assert predicted["places"] == result["places"]
    for entry in result["places"].values():
        assert Path(entry["path"], "manifest.json").is_file()
        assert entry["path"] in result["diff"]["after"]
    again = bed.run()
    assert not again["changed"]
    assert again["places"] == result["places"]
    assert bed.run(state="planned")["transfers"] == []


def test_files_that_have_not_arrived_are_not_published(bed: Bed) -> None:
    result = bed.run()
    assert result["failed"]
    assert result["msg"].count("did not arrive") == 5
    assert not (bed.store / "far").exists()


def test_a_damaged_model_is_named_and_repaired(bed: Bed) -> None:
    bed.bring()
    path = Path(bed.run()["places"]["near"]["path"])
    (path / SHARDS[0]).write_bytes(b"")
    plan = bed.run(state="planned")
    assert "found 0" in plan["transfers"][0]["damage"][0]
    assert plan["problems"] == []
    result = bed.run()
    assert result["changed"]
    assert SHARDS[0] in json.dumps(result["warnings"])
    assert not bed.run(verify=True)["changed"]


@pytest.mark.parametrize("state", ["planned", "present"])
def test_problems_come_all_at_once_and_before_any_change(bed: Bed, state: str) -> None:
    (bed.near / SHARDS[0]).unlink()
    bed.models["hub"] = {"model": "org/name"}
    bed.models["self"] = {"model": str(bed.store / "self")}
    result = bed.run(state=state, reserve_gib=1e9)
    text = "\n".join(result["problems"]) if state == "planned" else result["msg"]
    for part in (SHARDS[0], "org/name", "put the source elsewhere", "not enough space"):
        assert part in text
    assert not bed.store.exists()


def test_a_model_without_its_manifest_is_not_published(bed: Bed) -> None:
    bed.manifests = {}
    assert "manifests.far: is missing" in bed.run()["msg"]
    assert bed.run(state="planned")["problems"] == []


def test_a_manifest_that_was_edited_is_a_problem(bed: Bed) -> None:
    bed.manifests["far"]["files"]["config.json"]["size"] = 1
    assert "was edited" in bed.run(state="planned")["problems"][0]


# --- described


@pytest.fixture
def describe(run_module: RunModule) -> RunModule:
    return partial(run_module, model, state="described")


def test_only_the_models_of_one_origin_are_described(
    describe: RunModule, tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    root = write_model(tmp_path / "m")
    models = {"here": {"model": str(root)}, "there": {"model": f"controller:{root}"}}
    for origin, name in (("node", "here"), ("controller", "there")):
        result = describe(models=models, origin=origin)
        assert list(result["manifests"]) == [name]
        assert result["manifests"][name]["weight_bytes"] == 8000
        assert not result["changed"]
        assert result["problems"] == []


def test_all_problems_of_all_models_are_reported(
    describe: RunModule, tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    whole, broken = write_model(tmp_path / "whole"), write_model(tmp_path / "broken")
    (broken / "config.json").unlink()
    models = {
        "whole": {"model": str(whole)},
        "broken": {"model": str(broken)},
        "gone": {"model": "/nowhere/at/all"},
        "pinned": {"model": str(whole), "revision": "000000000000"},
        "hub": {"model": "org/name"},
    }
    result = describe(models=models)
    assert list(result["manifests"]) == ["whole"]
    assert len(result["problems"]) == 4
    assert result["manifests"]["whole"]["revision"] in "".join(result["problems"])
    # Only the node reports an entry without a usable source.
    assert describe(models=models, origin="controller")["problems"] == []


def test_the_cache_is_written_but_not_in_check_mode(
    describe: RunModule, tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    models = {"m": {"model": str(write_model(tmp_path / "m"))}}
    cache = tmp_path / "cache" / "manifests.json"
    describe(models=models, cache=str(cache), check=True)
    assert not cache.parent.exists()
    describe(models=models, cache=str(cache))
    assert cache.exists()


def test_the_error_names_a_cache_that_cannot_be_used(describe: RunModule, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = describe(models={}, cache=str(tmp_path / "file" / "manifests.json"))
    assert result["failed"]
    assert str(tmp_path / "file" / "manifests.json") in result["msg"]


# --- absent


class Shelf:
    """A store with one model that the releases of two instances need, and one model that no release needs."""

    def __init__(self, root: Path, publish_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self.paths = Paths(root)
        self.root = root / "models"
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mountinfo").write_text("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n")
        self.needed, self.idle = (publish_model(self.root, name, fill) for fill, name in enumerate(("needed", "idle")))
        for name in ("main", "other"):
            self.paths.release(name, 1).mkdir(parents=True)
            (self.paths.release(name, 1) / "release.json").write_text(json.dumps({"model_path": str(self.needed)}))
        self.paths.units.mkdir(parents=True)
        self.paths.unit("main").write_text(f"ExecStartPre=/usr/bin/docker create image serve {self.needed}\n")

    def remove(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        return self._run(model, check, state="absent", store=str(self.root), **arguments)


@pytest.fixture
def shelf(
    tmp_path: Path, publish_model: Callable[..., Path], run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> Shelf:
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given, **_more: None)
    shelf = Shelf(tmp_path, publish_model, run_module)
    monkeypatch.setattr(model, "Paths", lambda: shelf.paths)
    return shelf


def test_a_model_that_a_release_needs_stays(shelf: Shelf) -> None:
    foreseen = shelf.remove(check=True, names=["needed", "idle"])
    assert foreseen["removed"] == [str(shelf.idle)] and shelf.idle.exists()
    found = shelf.remove(names=["needed", "idle"])
    assert found["removed"] == foreseen["removed"] and "release 1 of main" in found["kept"][0]
    assert found["freed_gib"] == foreseen["freed_gib"] and str(shelf.idle) in found["diff"]["before"]
    assert not shelf.idle.parent.exists() and shelf.needed.is_dir()
    assert shelf.remove(names=["needed", "idle"])["changed"] is False


def test_models_that_are_not_named_stay(shelf: Shelf) -> None:
    assert shelf.remove(names=["else"])["changed"] is False


def test_check_mode_ignores_the_needs_of_leaving_instances(shelf: Shelf) -> None:
    assert shelf.remove(check=True, leaving=["main"], everything=True)["removed"] == [str(shelf.idle)]
    everything = shelf.remove(check=True, leaving=["main", "other"], everything=True)
    assert sorted(everything["removed"]) == sorted([str(shelf.needed), str(shelf.idle)])


def test_a_store_is_removed_if_no_release_needs_a_model(shelf: Shelf) -> None:
    for name in ("main", "other"):
        shutil.rmtree(shelf.paths.releases(name))
    shelf.paths.unit("main").unlink()
    (shelf.root / ".incoming/x").mkdir(parents=True)
    assert shelf.remove(everything=True)["changed"] is True
    assert not shelf.root.exists()
    assert shelf.remove(everything=True)["changed"] is False


def test_nothing_is_removed_from_a_store_that_other_nodes_may_use(shelf: Shelf) -> None:
    mounts = shelf.paths.root / "proc/self/mountinfo"
    mounts.write_text("22 1 0:9 / / rw shared:1 - nfs4 server:/m rw\n")
    message = shelf.remove(names=["idle"])["msg"]
    assert message.startswith(f"Models of the store {shelf.root} cannot be removed: ") and "nfs4" in message
    assert shelf.idle.is_dir()


@pytest.mark.parametrize(
    ("state", "missing"),
    [("described", "models"), ("planned", "store, models"), ("present", "store, models"), ("absent", "store")],
)
def test_each_state_names_its_missing_options(run_module: RunModule, state: str, missing: str) -> None:
    message = run_module(model, state=state)["msg"]
    assert message == f"state is {state} but all of the following are missing: {missing}"
