# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release composed from inventory, model registry and store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import users
from ansible_collections.baremetal.inference.plugins.module_utils.engine import compose
from ansible_collections.baremetal.inference.plugins.module_utils.engine.compose import Common
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.engine.flag_paths import Copied
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import executors
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

IMAGE = "registry.example.com/vllm@sha256:" + "0" * 64
OWN = "registry.example.com/vllm@sha256:" + "1" * 64
STORED = StoredModel("/mnt/models/tiny/abc", "abc")
INSTANCE = Instance("main", "tiny", 5005, accelerator="cpu")
SETTINGS = Settings(environment={"VLLM_API_KEY": "s3cret-value"})


def composed(
    instance: Instance = INSTANCE, entry: dict[str, Any] | None = None, gang: Gang | None = None, **more: Any
) -> Rendered:
    models = {"tiny": {"model": "/srv/tiny", "dtype": "half", **(entry or {})}}
    declared = Declared.read(models, more.pop("instances", []), "0.32.0", None, more.pop("versions", None))
    assert declared.problems == ()
    common = replace(Common(declared, IMAGE, SETTINGS, users.ids), **more)
    made = compose.compose(common, instance, declared.entries["tiny"], STORED, [], None, gang)
    return made.rendered(3, "now", "48g")


def test_an_instance_without_own_settings_gets_those_of_all_engines() -> None:
    release = composed().release
    assert (release.image, release.number, release.created) == (IMAGE, 3, "now")
    assert "--memory=48g" in release.container_argv and release.memory_limit == "48g"
    assert release.engine_argv[-2:] == ["--dtype", "half"]


@pytest.mark.parametrize("executor", ["", "ray"])
def test_a_gang_gets_the_secret_of_its_executor(executor: str) -> None:
    """The secret is made from the gang key, which is in no release. Without an executor, the key has no effect."""
    key = "0123456789abcdef"
    gang = Gang("main", 0, (Member("n1", 0, "10.0.0.1"), Member("n2", 1, "10.0.0.2")), 5110, 29510, executor=executor)
    instance = replace(INSTANCE, nodes=("n1", "n2"), gang_port=5110, rendezvous_port=29510, executor=executor)
    made, other = (composed(instance, gang=gang, gang_key=each) for each in (key, key + "x"))
    line = f"INFERENCE_RAY_TOKEN={executors.secret(key, gang)}"
    assert (line in made.environment.splitlines()) == bool(executor)
    assert key not in made.environment + made.unit + made.release.to_json()
    assert (made.release.id == other.release.id) == (not executor)


def test_the_memory_limit_is_no_part_of_the_id() -> None:
    declared = Declared.read({"tiny": {"model": "/srv/tiny"}}, [], "0.32.0")
    made = compose.compose(
        Common(declared, IMAGE, SETTINGS, users.ids), INSTANCE, declared.entries["tiny"], STORED, [], None
    )
    assert made.rendered(memory_limit="48g").release.id == made.rendered().release.id
    assert made.rendered(memory_limit="48g").unit != made.rendered().unit


def test_the_own_settings_of_an_instance_are_in_its_release() -> None:
    own = replace(
        INSTANCE, image=OWN, environment={"A": "1"}, shm_size="2g", memory="9g", ulimits={"core": "0"}, user="77:78"
    )
    made = composed(own, secrets={"main": {"HF_TOKEN": "another-s3cret"}})
    release = made.release
    assert release.image == OWN
    for word in ("--user=77:78", "--shm-size=2g", "--memory=9g", "--ulimit=core=0"):
        assert word in release.container_argv
    assert release.memory_limit == ""
    assert "A=1\n" in made.environment and "HF_TOKEN=another-s3cret\n" in made.environment
    assert "s3cret" not in made.unit + release.to_json()
    assert release.id != composed().release.id


def test_flags_are_spelt_for_the_instances_own_image() -> None:
    """The own image has vLLM 0.33, which takes JSON for this flag. vLLM 0.32 does not have the flag."""
    entry = {"reasoning-effort-map": ["a", "b"]}
    raw = {"name": "main", "model": "tiny", "port": 5005, "accelerator": "cpu", "image": OWN}
    made = composed(replace(INSTANCE, image=OWN), entry, versions={OWN: "0.33.0"}, instances=[raw])
    assert made.release.engine_argv[-2:] == ["--reasoning-effort-map", '["a","b"]']


def test_copied_files_and_warm_up_prompts_are_part_of_the_id() -> None:
    copied = {"controller:/srv/t.jinja": Copied("t.jinja", "ab" * 32)}
    entry = {"chat-template": "controller:/srv/t.jinja", "warm-up-prompts": ["Hello"]}
    release = composed(entry=entry, copied=copied).release
    assert release.mounts == ["/var/lib/inference/files/abababababababab"]
    place = "/var/lib/inference/files/abababababababab"
    assert f"--mount=type=bind,source={place},target={place},readonly" in release.container_argv
    assert f"{place}/t.jinja" in release.engine_argv
    assert release.warm_up == [{"prompt": "Hello"}]
    # The model registry's own value stays: a plan reads it.
    assert release.flags["chat-template"] == "controller:/srv/t.jinja"
    other = {"controller:/srv/t.jinja": Copied("t.jinja", "cd" * 32)}
    assert composed(entry=entry, copied=other).release.id != release.id
    assert composed(entry={**entry, "warm-up-prompts": ["Bye"]}, copied=copied).release.id != release.id


def test_a_user_who_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        composed(replace(INSTANCE, user="nobody-has-this"))
    assert "create the user first" in str(compose.user_problem(replace(INSTANCE, user="nobody-has-this")))
