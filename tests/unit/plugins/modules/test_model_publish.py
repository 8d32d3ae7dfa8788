# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module model_publish."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache, build
from ansible_collections.baremetal.inference.plugins.modules import model_publish

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
        return self._run(model_publish, **given)

    def bring(self) -> None:
        for item in self.run(state="planned")["copies"]:
            shutil.copytree(item["source"], item["incoming"], dirs_exist_ok=True)


@pytest.fixture
def bed(tmp_path: Path, write_model: Callable[..., Path], run_module: RunModule) -> Bed:
    return Bed(tmp_path, write_model, run_module)


def test_plans_without_touching_anything(bed: Bed) -> None:
    result = bed.run(state="planned", check=True)
    assert not result["changed"]
    assert [(item["name"], item["origin"], item["files"]) for item in result["transfers"]] == [
        ("far", "controller", 5),
        ("near", "node", 5),
    ]
    assert [item["name"] for item in result["copies"]] == ["far"]
    assert result["coming"] == {name: result["catalog"][name]["revision"] for name in ("far", "near")}
    assert result["catalog"]["far"] == {
        "path": str(bed.store / "far" / bed.manifests["far"]["revision"]),
        "revision": bed.manifests["far"]["revision"],
        "weight_bytes": 8000,
        "bytes": bed.manifests["far"]["bytes"],
    }
    assert sorted(path.name for path in bed.store.parent.iterdir()) == ["far", "near"]


def test_publishes_and_then_changes_nothing(bed: Bed) -> None:
    bed.bring()
    predicted = bed.run(check=True)
    result = bed.run()
    assert predicted["changed"]
    assert result["changed"]
    assert predicted["catalog"] == result["catalog"]
    for entry in result["catalog"].values():
        assert Path(entry["path"], "manifest.json").is_file()
        assert entry["path"] in result["diff"]["after"]
    again = bed.run()
    assert not again["changed"]
    assert again["catalog"] == result["catalog"]
    assert bed.run(state="planned")["transfers"] == []


def test_publishes_nothing_that_has_not_arrived(bed: Bed) -> None:
    result = bed.run()
    assert result["failed"]
    assert result["msg"].count("did not arrive") == 5
    assert not (bed.store / "far").exists()


def test_names_damage_and_repairs_it(bed: Bed) -> None:
    bed.bring()
    path = Path(bed.run()["catalog"]["near"]["path"])
    (path / SHARDS[0]).write_bytes(b"")
    plan = bed.run(state="planned")
    assert "found 0" in plan["transfers"][0]["damage"][0]
    assert plan["problems"] == []
    result = bed.run()
    assert result["changed"]
    assert SHARDS[0] in json.dumps(result["warnings"])
    assert not bed.run(verify=True)["changed"]


@pytest.mark.parametrize("state", ["planned", "published"])
def test_problems_come_all_at_once_and_before_any_change(bed: Bed, state: str) -> None:
    (bed.near / SHARDS[0]).unlink()
    bed.models["hub"] = {"model": "org/name"}
    bed.models["self"] = {"model": str(bed.store / "self")}
    result = bed.run(state=state, reserve_gib=1e9)
    text = "\n".join(result["problems"]) if state == "planned" else result["msg"]
    for part in (SHARDS[0], "org/name", "put the source elsewhere", "not enough space"):
        assert part in text
    assert not bed.store.exists()


def test_does_not_publish_without_the_manifest(bed: Bed) -> None:
    bed.manifests = {}
    assert "manifests.far: is missing" in bed.run()["msg"]
    assert bed.run(state="planned")["problems"] == []


def test_does_not_trust_a_manifest_that_was_edited(bed: Bed) -> None:
    bed.manifests["far"]["files"]["config.json"]["size"] = 1
    assert "was edited" in bed.run(state="planned")["problems"][0]
