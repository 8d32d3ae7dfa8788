# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast copies, from which engines load, and the cleaning of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from faults import steps
from node import PROJECT, Node, changes, playbook, wait_for

FAST = "/run/fast"
SMALL = "/srv/small"
CLEAN = str(PROJECT / "molecule/models/clean.yml")
PUBLISH, COPY = "baremetal.inference.model", "baremetal.inference.model_fast_copy"


def files_of_engine(node: Node, instance: str) -> str:
    """The path of an engine's weights, as its container sees them."""
    (path,) = [each for each in arguments(node, instance) if each.startswith(f"{FAST}/tiny-")]
    code = f"import os; print(os.path.realpath('{path}/model.safetensors'))"
    return node.run(f'docker exec vllm-{instance} python3 -c "{code}"')


def arguments(node: Node, instance: str) -> list[str]:
    return list(json.loads(node.run(f"docker inspect --format '{{{{json .Args}}}}' vllm-{instance}")))


def revision(node: Node, model: str) -> str:
    return node.run(f"ls -t /mnt/models/{model} | head -1")


def test_the_engines_load_from_the_fast_copy(node: Node) -> None:
    """Two variants have their weights on the fast disk once. Both serve the release that the inventory asks for."""
    copy = f"{FAST}/.copies/tiny-a/{revision(node, 'tiny-a')}/model.safetensors"
    assert [files_of_engine(node, instance) for instance in ("main", "office")] == [copy, copy]
    assert node.run(f"find {FAST}/.copies {FAST}/tiny-* -name '*.safetensors' -type f") == copy
    assert "pending" not in node.site("--tags", "model_store,vllm_configure")


def test_a_damaged_copy_is_made_anew_and_no_engine_notices(node: Node) -> None:
    pids = [node.engine_pid(name) for name in ("main", "office")]
    copy = f"{FAST}/.copies/tiny-a/{revision(node, 'tiny-a')}"
    node.run(f"rm {copy}/tokenizer.json")
    output = node.site("--tags", "model_store,vllm_configure")
    assert changes(output) == 1
    assert "pending" not in output
    node.run(f"cmp {copy}/tokenizer.json /mnt/models/tiny-a/*/tokenizer.json")
    assert [node.engine_pid(name) for name in ("main", "office")] == pids


@pytest.mark.full
def test_an_engine_with_a_damaged_copy_starts_from_the_store(node: Node) -> None:
    """Recovery starts the engine from the store; the other engine still serves. site.yml repairs the fast copy."""
    number = revision(node, "tiny-a")
    copy, link = f"{FAST}/.copies/tiny-a/{number}", f"{FAST}/tiny-a/{number}"
    other = node.engine_pid("office")
    # A new file replaces the old one: running engines keep the old file, which they have mapped.
    node.run(f"head --bytes=1000 {copy}/model.safetensors > /root/cut && mv /root/cut {copy}/model.safetensors")
    taken = len(steps(node))
    node.run("docker kill vllm-main")
    wait_for("a step is taken", lambda: len(steps(node)) > taken and steps(node)[-1]["outcome"], 120)
    assert "the fast copy is damaged" in steps(node)[-1]["outcome"]
    assert node.run(f"readlink {link}") == f"/mnt/models/tiny-a/{number}"
    wait_for("the engine serves", lambda: node.ask("tiny-pirate") == "Arr, I am tiny-a.")
    assert files_of_engine(node, "main") == f"/mnt/models/tiny-a/{number}/model.safetensors"
    assert node.engine_pid("office") == other
    assert "pending" not in node.site("--tags", "model_store,vllm_configure")
    assert node.run(f"readlink {link}") == f"../.copies/tiny-a/{number}"
    node.run(f"cmp {copy}/model.safetensors /mnt/models/tiny-a/{number}/model.safetensors")


@pytest.fixture
def small(node: Node) -> Iterator[str]:
    """A fast disk smaller than the model."""
    node.run(f"mkdir -p {SMALL} && mount -t tmpfs -o size=1m tmpfs {SMALL}")
    yield f"{SMALL}/models"
    node.run(f"umount {SMALL} && rmdir {SMALL}")


def test_a_fast_disk_without_room_for_the_copy_does_not_fail_the_run(node: Node, small: str) -> None:
    """The links on the fast disk then lead to the store."""
    given: dict[str, Any] = {"model_store_fast_path": small, "model_store_reserve_gib": 0}
    output = node.site("--tags", "model_store", **given)
    assert "engines load it from the store: the copy needs 1." in " ".join(output.split())
    path = f"{small}/tiny-a/{revision(node, 'tiny-a')}"
    assert node.run(f"readlink {path}") == f"/mnt/models/tiny-a/{revision(node, 'tiny-a')}"
    node.run(f"test -r {path}/config.json")
    assert changes(node.site("--tags", "model_store", **given)) == 0
    assert node.run(f"find {small}/.copies -type f 2>/dev/null", check=False) == ""


def test_the_least_recently_used_copy_is_removed_unless_a_release_needs_it(node: Node) -> None:
    node.run("mkdir -p /srv/spare && cp -L /mnt/models/tiny-a/*/* /srv/spare/ && rm /srv/spare/manifest.json")
    places = node.module(PUBLISH, store="/mnt/models", models={"spare": {"model": "/srv/spare"}})["places"]
    given = {"store": "/mnt/models", "fast_path": FAST}
    assert node.module(COPY, places=places, **given)["copied"] == [f"{FAST}/spare/{places['spare']['revision']}"]
    tiny = {"tiny-a": {"path": f"/mnt/models/tiny-a/{revision(node, 'tiny-a')}"}}
    # The limit has room for one copy. The copy of tiny-a is older, but engines use it.
    dropped = node.module(COPY, places=tiny, limit_gib=0.002, **given)["dropped"]
    assert dropped == [f"{FAST}/spare/{places['spare']['revision']}"]
    assert node.run(f"readlink -f {dropped[0]}") == places["spare"]["path"]
    result = node.module(COPY, places=places, limit_gib=0.002, **given)
    assert (result["dropped"], result["copied"]) == ([], [])
    assert "raise model_store_fast_limit_gib" in result["notes"][0]


def test_cleaning_keeps_the_revisions_that_a_rollback_needs(node: Node) -> None:
    """Revisions stay if releases need them. Of a model without a release, only the newest revision stays."""
    kept = node.run("ls /mnt/models/tiny-pirate").split()
    models = {
        "tiny-a": {"model": "controller:{{ demo_cache }}/models/tiny-a", "dtype": "float32", "max-model-len": 512}
        | {"enforce-eager": True},
        "tiny-pirate": {"base": "tiny-a", "system-prompt": "Another one."},
        "tiny-clerk": {"base": "tiny-a", "system-prompt": "And another."},
    }
    node.site("--tags", "model_store,vllm_configure", models=models)
    staged = node.run("ls /mnt/models/tiny-pirate").split()
    assert len(staged) == len(kept) + 1
    node.site("--tags", "model_store,vllm_configure")
    for number in (1, 2):
        node.run(f"echo {number} > /srv/spare/note.txt")
        node.module(PUBLISH, store="/mnt/models", models={"spare": {"model": "/srv/spare"}})
    spare = node.run("ls -t /mnt/models/spare").split()
    assert len(spare) == 3
    node.run("mkdir -p /mnt/models/.incoming/gone.0123456789ab && touch -d '3 days ago' /mnt/models/.incoming/gone*")
    output = playbook(node.name, "--check", name=CLEAN, model_store_keep=1)
    assert "would be freed" in output
    assert len(node.run("ls /mnt/models/spare").split()) == 3
    playbook(node.name, name=CLEAN, model_store_keep=1)
    assert node.run("ls /mnt/models/tiny-pirate").split() == staged
    assert node.run("ls /mnt/models/spare").split() == spare[:1]
    assert node.run("ls -A /mnt/models/.incoming") == ""
    assert changes(playbook(node.name, name=CLEAN, model_store_keep=1)) == 0
    node.run(f"rm -rf /srv/spare /mnt/models/spare {FAST}/spare {FAST}/.copies/spare")
    assert "pending" not in node.site("--tags", "model_store,vllm_configure")
    assert node.ask("tiny-pirate") == "Arr, I am tiny-a."
