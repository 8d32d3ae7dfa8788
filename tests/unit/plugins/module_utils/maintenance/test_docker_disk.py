# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cleaning removes from Docker's disk, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk

from ..conftest import stage

OURS = "registry.example.com:5000/vllm"


class FakeDocker(Docker):
    """A fake of Docker's disk that records removals."""

    def __init__(self, **disk: Any) -> None:
        super().__init__()
        self.disk = disk
        self.gone: list[str] = []

    def disk_usage(self) -> dict[str, Any]:
        return self.disk

    def remove_image(self, reference: str) -> None:
        self.gone.append(reference)

    def remove(self, container: str) -> None:
        self.gone.append(container)

    def prune_builds(self) -> None:
        self.gone.append("builds")


def image(number: int, *digests: str, tags: tuple[str, ...] = (), shared: int = 0) -> dict[str, Any]:
    return {"Id": f"sha256:{number}", "RepoDigests": digests, "RepoTags": tags, "Size": 1000, "SharedSize": shared}


def container(name: str, number: int, state: str = "running") -> dict[str, Any]:
    return {"Names": [f"/{name}"], "ImageID": f"sha256:{number}", "State": state, "SizeRw": 7}


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path)
    stage(paths, "main", 5005)
    monkeypatch.setattr(docker_disk, "kept_images", lambda _paths, _without=(): {f"{OURS}@sha256:kept"})
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if "busy" in unit else "inactive")
    return paths


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("vllm@sha256:1", "vllm"),
        ("vllm:v1", "vllm"),
        (f"{OURS}@sha256:1", OURS),
        (f"{OURS}:v1@sha256:1", OURS),
        ("registry:5000/a/b", "registry:5000/a/b"),
    ],
)
def test_the_repository_of_an_image_is_read_from_its_reference(reference: str, expected: str) -> None:
    assert docker_disk.repository(reference) == expected


def test_only_unneeded_images_and_containers_are_removed(paths: Paths) -> None:
    docker = FakeDocker(
        Images=[
            image(1, f"{OURS}@sha256:kept"),
            image(2, f"{OURS}@sha256:old", tags=(f"{OURS}:old",), shared=400),
            image(3, f"{OURS}@sha256:running"),
            image(4, "somebody/else@sha256:x"),
            image(5, "<none>@<none>", tags=("<none>:<none>",)),
            image(6, f"{OURS}@sha256:shared", "somebody/else@sha256:y"),
            image(7, f"{OURS}@sha256:asked"),
        ],
        Containers=[
            container("app", 3),
            container("vllm-old", 2, "exited"),
            container("vllm-busy", 3, "exited"),
            container("vllm-main", 1),
        ],
        BuildCache=[
            {"ID": "a", "Size": 50},
            {"ID": "b", "Size": 70, "InUse": True},
            {"ID": "c", "Size": 9, "Shared": True},
        ],
    )
    disk = docker_disk.Disk(docker, paths, keep=frozenset({f"{OURS}@sha256:asked"}))
    expected = [
        docker_disk.Item("container", "vllm-old", 7),
        docker_disk.Item("image", f"{OURS}@sha256:old", 600),
        docker_disk.Item("image", "sha256:5", 1000),
        docker_disk.Item("cache", "2 parts of the build cache", 50),
    ]
    assert disk.clean(caches=True, check=True) == expected and docker.gone == []
    assert disk.clean(caches=True, check=False) == expected
    assert docker.gone == ["vllm-old", f"{OURS}@sha256:old", f"{OURS}:old", "sha256:5", "builds"]


def test_an_image_of_a_kept_release_stays(paths: Paths) -> None:
    docker = FakeDocker(Images=[image(1, f"{OURS}@sha256:kept")], Containers=None, BuildCache=None)
    assert docker_disk.Disk(docker, paths).clean(caches=True, check=False) == [] and docker.gone == []


def test_an_image_stays_while_a_kept_release_names_it_by_another_digest(paths: Paths) -> None:
    docker = FakeDocker(Images=[image(1, f"{OURS}@sha256:gone", f"{OURS}@sha256:kept")])
    assert docker_disk.Disk(docker, paths).forget({f"{OURS}@sha256:gone"}) == [] and docker.gone == []


def test_an_image_is_removed_with_the_last_release_that_needed_it(paths: Paths) -> None:
    left = {f"{OURS}@sha256:kept", f"{OURS}@sha256:gone", f"{OURS}@sha256:running"}
    docker = FakeDocker(
        Images=[
            image(1, f"{OURS}@sha256:kept"),
            image(2, f"{OURS}@sha256:gone"),
            image(3, f"{OURS}@sha256:running"),
            image(4, f"{OURS}@sha256:other"),
        ],
        Containers=[container("app", 3)],
    )
    assert [item.name for item in docker_disk.Disk(docker, paths).forget(left)] == [f"{OURS}@sha256:gone"]
    assert docker.gone == [f"{OURS}@sha256:gone"]
    assert docker_disk.Disk(FakeDocker(), paths).forget(set()) == []
