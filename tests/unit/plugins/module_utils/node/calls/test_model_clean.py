# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_clean: which revisions it removes from a store, and which stay."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import MANIFEST
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import model_clean
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

DAY = 86400


RunModule = Callable[..., dict[str, Any]]


class Bed:
    """A store with four revisions of model m, the oldest first, each published a day after the one before."""

    def __init__(self, root: Path, write_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self._write_model = write_model
        self.root = root
        self.paths = Paths(root / "node")
        self.store, self.fast = root / "store", root / "fast"
        self.docker: tuple[int, str, str] = (0, "", "")
        self.mount("xfs")
        self.revisions = [self.publish("m", fill) for fill in range(1, 5)]

    def mount(self, kind: str) -> None:
        """The file system that the store lies on."""
        path = self.paths.root / "proc/self/mountinfo"
        path.parent.mkdir(parents=True, exist_ok=True)
        place = str(self.store).replace("t", "\\164")
        path.write_text(
            f"22 1 0:20 / / rw shared:1 - nfs4 server:/root rw\n23 22 8:1 / {place} rw - {kind} /dev/sdb1 rw\n"
            f"24 22 8:1 / {self.store}-other rw - nfs4 server:/m rw\n"
        )

    def publish(self, name: str, fill: int) -> Path:
        source = self._write_model(self.root / "source" / f"{name}{fill}", fill=fill)
        manifest, _problems = build(source, name, HashCache())
        assert manifest
        wanted = Store(self.store, HashCache()).plan(name, manifest)
        Store(self.store, HashCache()).publish(wanted, source)
        self.published(wanted.path, fill)
        return wanted.path

    def published(self, path: Path, day: int) -> None:
        os.utime(path / MANIFEST, (day * DAY, day * DAY))

    def release(self, path: Path, number: int = 1) -> Path:
        directory = self.paths.release("main", number)
        directory.mkdir(parents=True)
        (directory / "release.json").write_text(json.dumps({"model_path": str(path)}))
        return directory

    def left(self) -> list[int]:
        """The numbers, from 0, of the revisions that the store still has."""
        return [number for number, path in enumerate(self.revisions) if path.is_dir()]

    def run(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {"store": str(self.store), "keep": 1, **arguments}
        return self._run(model_clean, check, **given)


@pytest.fixture
def bed(
    tmp_path: Path,
    write_model: Callable[..., Path],
    run_module: RunModule,
    monkeypatch: pytest.MonkeyPatch,
) -> Bed:
    bed = Bed(tmp_path, write_model, run_module)
    monkeypatch.setattr(model_clean, "Paths", lambda: bed.paths)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: "/usr/bin/docker")
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda module, argv: bed.docker)
    return bed


def reasons(result: dict[str, Any]) -> dict[str, str]:
    return {Path(item["path"]).name: item["why"] for item in result["kept"]}


def test_the_newest_revisions_stay_and_check_mode_predicts_the_removal(bed: Bed) -> None:
    predicted = bed.run(check=True, keep=2)
    assert bed.left() == [0, 1, 2, 3]
    assert predicted["lines"][-1].endswith("would be freed")
    result = bed.run(keep=2)
    assert (predicted["freed"], predicted["changed"]) == (result["freed"], True)
    assert bed.left() == [2, 3]
    assert [item["why"] for item in result["freed"]] == [
        "superseded: 2 newer, and nothing needs it",
        "superseded: 3 newer, and nothing needs it",
    ]
    assert set(reasons(result).values()) == {"one of the 2 newest"}
    again = bed.run(keep=2)
    assert (again["changed"], again["lines"]) == (False, ["nothing to clean up"])
    assert list((bed.store / ".incoming").iterdir()) == []


def test_the_revision_of_a_release_stays_also_by_its_fast_path(bed: Bed) -> None:
    bed.release(bed.revisions[0])
    bed.release(bed.fast / "m" / bed.revisions[1].name, 2)
    result = bed.run()
    assert bed.left() == [0, 1, 3]
    assert reasons(result)[bed.revisions[0].name] == "release 1 of main"
    shutil.rmtree(bed.paths.releases("main"))
    bed.run()
    assert bed.left() == [3]


def test_the_revision_of_a_superseded_release_is_removed(bed: Bed) -> None:
    bed.release(bed.revisions[0])
    bed.release(bed.revisions[1], 2)
    predicted = bed.run(check=True, keep_releases=1)
    result = bed.run(keep_releases=1)
    assert bed.left() == [1, 3] and predicted["freed"] == result["freed"]
    assert bed.run(keep_releases=1)["changed"] is False


def test_a_revision_named_by_a_unit_or_a_container_stays(bed: Bed) -> None:
    bed.paths.unit("main").parent.mkdir(parents=True)
    bed.paths.unit("main").write_text(f"ExecStartPre=/usr/bin/docker create image serve {bed.revisions[0]} \\\n")
    bed.docker = (0, json.dumps([{"Args": ["serve", str(bed.revisions[1])]}]), "")
    bed.run()
    assert bed.left() == [0, 1, 3]


def test_a_revision_named_by_a_model_registry_stays(bed: Bed) -> None:
    bed.paths.registry.parent.mkdir(parents=True)
    models = {"m": {"model": "controller:/m", "revision": bed.revisions[0].name}}
    bed.paths.registry.write_text(json.dumps({"schema": 1, "models": models}))
    bed.run(models={"m": {"model": "controller:/m", "revision": bed.revisions[1].name}})
    assert bed.left() == [0, 1, 3]


@pytest.mark.parametrize("unreadable", ["docker", "release", "registry"])
def test_nothing_is_removed_if_the_needed_revisions_are_unknown(bed: Bed, unreadable: str) -> None:
    if unreadable == "docker":
        bed.docker = (1, "", "Cannot connect to the Docker daemon")
    elif unreadable == "release":
        (bed.release(bed.revisions[0]) / "release.json").write_text("{}")
    else:
        bed.paths.registry.parent.mkdir(parents=True)
        bed.paths.registry.write_text("{")
    result = bed.run()
    assert result["failed"]
    assert bed.left() == [0, 1, 2, 3]


@pytest.mark.parametrize("content", ["[]", '["m"]', "null", '{"models": ["m"]}'])
def test_a_damaged_registry_of_the_node_stops_the_cleaning(bed: Bed, content: str) -> None:
    bed.paths.registry.parent.mkdir(parents=True, exist_ok=True)
    bed.paths.registry.write_text(content)
    result = bed.run()
    assert result["failed"] and f"{bed.paths.registry} is damaged" in result["msg"]
    assert bed.left() == [0, 1, 2, 3]


def test_the_unit_of_a_damaged_release_names_its_revision(bed: Bed) -> None:
    directory = bed.release(bed.revisions[0])
    (directory / "vllm@main.service").write_text((directory / "release.json").read_text())
    (directory / "release.json").write_text('{"half of')
    bed.run()
    assert bed.left() == [0, 3]


def test_nothing_is_removed_from_a_store_that_other_nodes_may_use(bed: Bed) -> None:
    bed.mount("nfs4")
    result = bed.run()
    assert "lies on nfs4, which other nodes may use, too" in result["msg"]
    assert bed.left() == [0, 1, 2, 3]


def test_the_option_keep_must_be_one_or_more(bed: Bed) -> None:
    result = bed.run(keep=0)
    assert "must be 1 or more" in result["msg"]
    assert bed.left() == [0, 1, 2, 3]


def test_fast_copies_are_cleaned_only_with_the_option_fast_path(bed: Bed) -> None:
    fast = FastStore(bed.fast, bed.store, HashCache())
    lost = ("m", bed.revisions[0].name)
    fast.apply(fast.outlook([lost], {}, Room(0, 0)))
    shutil.rmtree(bed.revisions[0])
    assert not bed.run(keep=4)["changed"]
    assert (
        bed.run(keep=4, fast_path=str(bed.fast))["freed"][0]["why"]
        == "a copy of a revision that the store no longer has"
    )
    assert not os.path.lexists(fast.place(lost))
