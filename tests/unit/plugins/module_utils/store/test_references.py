# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The revisions that a node still needs: releases, units and containers name them by paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import INFO
from ansible_collections.baremetal.inference.plugins.module_utils.store import references

ONE, TWO, THREE = (f"{number}{number}12cd34ef56" for number in "abc")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    paths.units.mkdir(parents=True)
    return paths


def release(paths: Paths, name: str, number: int, text: str, file: str = "release.json") -> Path:
    directory = paths.release(name, number)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file).write_text(text)
    return directory


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"serve /mnt/models/m/{ONE} --port 5005", {("m", ONE)}),
        (
            f'{{"model_path": "/mnt/fast/m/{ONE}", "base": "/mnt/models/a.b-c_d/{TWO}/x"}}',
            {("m", ONE), ("a.b-c_d", TWO)},
        ),
        (f"/srv/{ONE}0", set()),
        (f"/srv/.incoming/{ONE[:-1]}", set()),
        (f"/srv/m/{ONE.upper()}", set()),
        (f"m/{ONE}", set()),
        ("", set()),
    ],
)
def test_a_text_names_revisions_by_their_paths(text: str, found: set[references.Revision]) -> None:
    assert references.named(text) == found


def test_releases_units_and_containers_need_the_revisions_that_they_name(paths: Paths) -> None:
    release(paths, "main", 1, f"/mnt/models/m/{ONE}")
    paths.unit("other").write_text(f"serve /mnt/models/m/{TWO}\n")
    (paths.units / "ssh.service").write_text("serve /mnt/models/m/ffffffffffff\n")
    assert references.of_node(paths, f'["/mnt/models/m/{THREE}"]') == {
        ("m", ONE): "release 1 of main",
        ("m", TWO): "the unit vllm@other.service",
        ("m", THREE): "a container",
    }


def test_instances_and_releases_that_are_removed_need_nothing(paths: Paths) -> None:
    for number, revision in ((1, ONE), (2, TWO)):
        release(paths, "main", number, f"/mnt/models/m/{revision}")
    paths.unit("main").write_text(f"serve /mnt/models/m/{TWO}\n")
    assert references.of_node(paths, "", without=["main"]) == {}
    assert set(references.of_node(paths, "", superseded=[("main", 1), ("other", 2)])) == {("m", TWO)}


def test_the_unit_of_a_damaged_release_names_the_needed_revision(paths: Paths) -> None:
    release(paths, "main", 1, '{"half of')
    release(paths, "main", 1, f"serve /mnt/models/m/{ONE}", "vllm@main.service")
    assert set(references.of_node(paths, "")) == {("m", ONE)}


def test_the_environment_of_a_release_is_not_read(paths: Paths) -> None:
    release(paths, "main", 1, f"/mnt/models/m/{ONE}")
    release(paths, "main", 1, f"TOKEN=/mnt/models/m/{TWO}", "environment")
    assert set(references.of_node(paths, "")) == {("m", ONE)}


def test_a_release_that_names_no_model_is_an_error(paths: Paths) -> None:
    directory = release(paths, "main", 1, "{}")
    with pytest.raises(InputError, match="names no model: remove this directory") as caught:
        references.of_node(paths, "")
    assert str(directory) in str(caught.value)
    assert references.of_node(paths, "", without=["main"]) == {}


def test_a_variant_needs_its_base(tmp_path: Path) -> None:
    variant = tmp_path / "bot" / ONE
    variant.mkdir(parents=True)
    (variant / INFO).write_text(json.dumps({"base": {"name": "m", "revision": TWO}}))
    needed = {("bot", ONE): "release 1 of main", ("plain", THREE): "a container"}
    assert references.with_bases(needed, tmp_path) == {**needed, ("m", TWO): f"the base of bot/{ONE}"}
    both = {**needed, ("m", TWO): "a container"}
    assert references.with_bases(both, tmp_path) == both


class Docker:
    """Answers `docker ps` with `ids`, and each `docker inspect` with the next of `inspected`."""

    def __init__(self, ids: str, *inspected: tuple[int, str, str], code: int = 0) -> None:
        self.listed = (code, ids, "Cannot connect to the Docker daemon\n" if code else "")
        self.inspected = list(inspected)
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        self.calls.append(command)
        return self.listed if command[1] == "ps" else self.inspected.pop(0)


def test_containers_that_do_not_run_count_as_well() -> None:
    docker = Docker("aa\nbb\n", (0, '[{"Args": []}]', ""))
    assert references.containers(docker, "/usr/bin/docker") == '[{"Args": []}]'
    assert docker.calls == [
        ["/usr/bin/docker", "ps", "--all", "--quiet", "--no-trunc"],
        ["/usr/bin/docker", "inspect", "aa", "bb"],
    ]


def test_without_docker_or_containers_the_text_of_containers_is_empty() -> None:
    docker = Docker("")
    assert references.containers(docker, None) == "" and docker.calls == []
    assert references.containers(docker, "docker") == "" and len(docker.calls) == 1


def test_containers_are_listed_again_if_one_disappears() -> None:
    gone = (1, "", "No such container: aa")
    assert references.containers(Docker("aa", gone, gone, (0, "[]", "")), "docker") == "[]"
    with pytest.raises(InputError, match="No such container: aa"):
        references.containers(Docker("aa", gone, gone, gone), "docker")


def test_a_docker_that_does_not_answer_is_an_error() -> None:
    docker = Docker("", code=1)
    with pytest.raises(InputError, match="Cannot connect to the Docker daemon; see `systemctl status docker`"):
        references.containers(docker, "docker")
    assert len(docker.calls) == references.TRIES
