# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of models from a store: models that are needed, and files of operators, stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.remove import Removal, without_containers
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote, record_source


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "node/proc/self").mkdir(parents=True)
    (tmp_path / "node/proc/self/mountinfo").write_text("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n")
    return Paths(tmp_path / "node")


def silent(_command: list[str]) -> tuple[int, str, str]:
    return 0, "", ""


def test_models_are_removed_with_their_fast_copies(
    tmp_path: Path, paths: Paths, publish_model: Callable[..., Path]
) -> None:
    store, fast = tmp_path / "store", tmp_path / "fast"
    gone, stays = (publish_model(store, name, fill) for fill, name in enumerate(("gone", "stays")))
    copies = FastStore(fast, store, HashCache())
    revisions = [(path.parent.name, path.name) for path in (gone, stays)]
    copies.apply(copies.outlook(revisions, {}, Room(0, 0)))
    removal = Removal(store, fast, paths)
    removal.plan(["gone"], [], silent, None)
    assert gone.is_dir()
    removal.apply(everything=False)
    assert sorted(path.name for path in store.iterdir()) == ["stays"]
    assert sorted(path.name for path in fast.iterdir()) == [".copies", "stays"]
    assert copies.place(revisions[1]).resolve() == fast / ".copies/stays" / stays.name


def test_files_of_operators_stay_in_a_store_without_models(
    tmp_path: Path, paths: Paths, publish_model: Callable[..., Path]
) -> None:
    store = tmp_path / "store"
    publish_model(store, "m")
    (store / "notes").write_text("of an operator")
    removal = Removal(store, None, paths)
    removal.plan(None, [], silent, None)
    removal.apply(everything=True)
    assert [path.name for path in store.iterdir()] == ["notes"]


def test_the_record_of_sources_is_removed_with_the_last_revision(
    tmp_path: Path, paths: Paths, publish_model: Callable[..., Path]
) -> None:
    store = tmp_path / "store"
    remote = Remote("hub", "acme/tiny", "0123456789" * 4)
    for fill, name in enumerate(("gone", "stays")):
        record_source(store / name, remote, publish_model(store, name, fill).name)
    removal = Removal(store, None, paths)
    removal.plan(["gone"], [], silent, None)
    removal.apply(everything=False)
    assert sorted(path.name for path in store.iterdir()) == ["stays"]
    assert (store / "stays/.sources.json").is_file()
    removal = Removal(store, None, paths)
    removal.plan(None, [], silent, None)
    removal.apply(everything=True)
    assert not store.exists()


def test_while_a_container_needs_a_model_transfers_stay_too(
    tmp_path: Path, paths: Paths, publish_model: Callable[..., Path]
) -> None:
    store = tmp_path / "store"
    needed = publish_model(store, "m")
    (store / ".incoming/half").mkdir(parents=True, exist_ok=True)

    def docker(command: list[str]) -> tuple[int, str, str]:
        return 0, "id\n" if "ps" in command else json.dumps([{"Name": "/vllm-main", "Args": [str(needed)]}]), ""

    removal = Removal(store, None, paths)
    removal.plan(None, [], docker, "docker")
    removal.apply(everything=True)
    assert [item.why for item in removal.cleaning.kept] == ["a container"]
    assert (store / ".incoming/half").is_dir() and needed.is_dir()
    leaves = Removal(store, None, paths)
    leaves.plan(None, ["main"], docker, "docker")
    assert [item.path for item in leaves.cleaning.freed] == [needed]


def test_a_docker_that_does_not_answer_is_an_error(tmp_path: Path, paths: Paths) -> None:
    with pytest.raises(InputError, match="does not list the containers, which may need models"):
        Removal(tmp_path / "store", None, paths).plan(None, [], lambda _command: (1, "", "no daemon"), "docker")


def test_containers_of_removed_instances_need_nothing() -> None:
    text = json.dumps([{"Name": "/vllm-main", "x": 1}, {"Name": "/app"}])
    assert json.loads(without_containers(text, ["main"])) == [{"Name": "/app"}]
    assert without_containers(text, []) == text
    assert without_containers("", ["main"]) == ""
