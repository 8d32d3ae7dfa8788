# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of a node, compared with the models that the node must have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.publish import Publisher, Rules, check_place
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import parse, record_source
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

from ...fake_hub import COMMIT, FakeHub

PLANS, PUBLISHES = Rules(needs_manifests=False, needs_fetched=False), Rules(needs_manifests=True, needs_fetched=True)
REMOTE = {"model": "acme/tiny", "revision": COMMIT}


@pytest.fixture
def source(tmp_path: Path, write_model: Callable[..., Path]) -> Path:
    return write_model(tmp_path / "source")


def publisher(root: Path, models: Any, rules: Rules = PLANS, manifests: Any = None, url: str = "") -> Publisher:
    return Publisher(Store(root, HashCache()), models, manifests or {}, Hub(url), rules)


def test_a_model_of_the_node_is_planned_and_then_published(tmp_path: Path, source: Path) -> None:
    found = publisher(tmp_path / "store", {"m": {"model": str(source)}}, PUBLISHES)
    plans, problems = found.plan(0)
    assert problems == []
    transfer = found.transfer(plans[0])
    assert (transfer["origin"], transfer["source"], transfer["files"]) == ("node", str(source), 5)
    assert transfer["rsync_opts"] == []
    found.publish(plans)
    assert found.store.plan("m", plans[0].manifest).published
    assert found.places(plans)["m"]["path"] == str(tmp_path / "store/m" / plans[0].manifest.revision)


def test_a_model_of_the_controller_needs_its_manifest_to_be_published(tmp_path: Path, source: Path) -> None:
    models, manifest = {"m": {"model": f"controller:{source}"}}, build(source, "m", HashCache())[0]
    assert manifest
    assert publisher(tmp_path / "store", models).plan(0) == ([], [])
    (problem,) = publisher(tmp_path / "store", models, PUBLISHES).plan(0)[1]
    assert str(problem).startswith("manifests.m: is missing")
    found = publisher(tmp_path / "store", models, PUBLISHES, {"m": manifest.to_dict()})
    plans, problems = found.plan(0)
    assert problems == [] and found.transfer(plans[0])["rsync_opts"][-1] == "'--exclude=*'"
    with pytest.raises(InputError, match="did not arrive"):
        found.publish(plans)


def test_a_remote_model_is_in_the_list_of_fetches(tmp_path: Path, hub: FakeHub) -> None:
    found = publisher(tmp_path / "store", {"m": REMOTE}, url=hub.url)
    plans, problems = found.plan(0)
    assert (plans, problems) == ([], [])
    assert [(each["name"], each["hub"], each["source"]) for each in found.fetches] == [("m", True, "acme/tiny")]
    assert found.fetches[0]["summary"].startswith("m from acme/tiny: ")
    assert found.remotes["m"]["revision"] == ""
    assert found.places(plans)["m"] == {
        "path": str(tmp_path / "store/m/REVISION"),
        "revision": "REVISION",
        "weight_bytes": 0,
        "bytes": 0,
    }
    (problem,) = publisher(tmp_path / "store", {"m": REMOTE}, PUBLISHES, url=hub.url).plan(0)[1]
    assert str(problem) == "models.m: acme/tiny was not fetched: run the role again"


def test_a_remote_model_that_was_fetched_is_published(tmp_path: Path, publish_model: Callable[..., Path]) -> None:
    path, remote = publish_model(tmp_path / "store", "m"), parse(REMOTE)
    assert remote
    record_source(path.parent, remote, path.name)
    found = publisher(tmp_path / "store", {"m": REMOTE}, PUBLISHES)
    plans, problems = found.plan(0)
    assert (found.remotes, found.fetches, problems) == ({"m": {"key": remote.key, "revision": path.name}}, [], [])
    assert plans[0].published and found.places(plans)["m"]["path"] == str(path)


def test_a_hub_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    (problem,) = publisher(tmp_path / "store", {"m": REMOTE}, url="http://127.0.0.1:9").plan(0)[1]
    assert "models.m: acme/tiny: the hub http://127.0.0.1:9 does not answer as expected" in str(problem)


def test_the_problems_of_all_models_are_reported_at_once(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "store"
    models = {"own": {"model": str(store / "own")}, "bad": {"model": "?"}, "edited": {"model": "controller:/m"}}
    found = publisher(store, {**models, "m": {"model": str(source)}}, manifests={"edited": {"schema": 9}})
    text = "\n".join(map(str, found.plan(1 << 60)[1]))
    for part in ("put the source elsewhere", "models.bad", "manifests.edited: has schema 9", "not enough space"):
        assert part in text


@pytest.mark.parametrize(
    ("source", "misplaced"),
    [("/s/m", True), ("/s/m/x", True), ("/s", True), ("/", True), ("/s/other", False), ("/s/m2", False)],
)
def test_a_source_that_overlaps_the_place_of_its_model_is_refused(source: str, misplaced: bool) -> None:
    assert bool(check_place(Path("/s"), "m", Path(source))) == misplaced
