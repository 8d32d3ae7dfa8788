# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks before a container is created. All problems are reported at once."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.engine import prepare
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..conftest import FakeDocker, FakeProc

IMAGE = "registry.example.com/vllm@sha256:00"


@pytest.fixture
def release(tmp_path: Path, port: int) -> Release:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    instance = Instance(name="main", model="tiny-a", port=port, accelerator="cpu")
    return render(instance, [], StoredModel(str(model), "r"), IMAGE, Settings()).release


def run(release: Release, docker: FakeDocker, timeout: float = 5, proc: Path = Path("/proc")) -> list[str]:
    said: list[str] = []
    prepare.prepare(release, Docker(docker.path), said.append, timeout=timeout, proc=proc)
    return said


def test_a_leftover_container_is_removed(release: Release, docker: FakeDocker) -> None:
    docker.images.add(IMAGE)
    docker.create("vllm-main")
    assert "removing the container vllm-main" in run(release, docker)[0]
    assert docker.removed == ["vllm-main"]
    assert run(release, docker) == []


def test_all_problems_are_reported_at_once(release: Release, docker: FakeDocker) -> None:
    Path(release.model_path, "config.json").unlink()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", release.port))
        stranger.listen()
        with pytest.raises(prepare.NotPrepared) as caught:
            run(release, docker)
    image, model, port = caught.value.problems
    assert f"the image {IMAGE} is not on this node" in image
    assert "no readable config.json" in model
    assert f"port {release.port} is taken by pid " in port
    assert "python" in port


def test_the_holder_of_the_port_is_named_with_its_container(
    release: Release, docker: FakeDocker, proc: FakeProc
) -> None:
    docker.images.add(IMAGE)
    identity = "ab" * 32
    docker.create(identity)
    proc.listen(release.port, inode=5)
    # Two workers of one server: one problem.
    proc.process(50, namespace=9, inode=5, cgroup=f"/docker/{identity}")
    proc.process(51, namespace=9, inode=5, cgroup=f"/docker/{identity}")
    with pytest.raises(prepare.NotPrepared) as caught:
        run(release, docker, proc=proc.root)
    (problem,) = caught.value.problems
    assert f"(python3 -m server) in container {identity}" in problem


def test_a_missing_model_is_a_problem(release: Release, docker: FakeDocker, tmp_path: Path) -> None:
    docker.images.add(IMAGE)
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    with pytest.raises(prepare.NotPrepared, match="the model tiny-a is not at"):
        run(release, docker)


def test_dockerd_is_awaited(release: Release, docker: FakeDocker) -> None:
    docker.images.add(IMAGE)
    docker.down()
    threading.Timer(0.3, docker.up).start()
    assert run(release, docker)[0].startswith("waiting for dockerd (0 of 5 s)")


def test_dockerd_is_not_awaited_for_ever(release: Release, docker: FakeDocker) -> None:
    docker.down()
    with pytest.raises(prepare.NotPrepared, match="after 0 s: systemctl status docker"):
        run(release, docker, timeout=0.1)


def test_a_missing_file_that_a_flag_names_is_a_problem(release: Release, docker: FakeDocker, tmp_path: Path) -> None:
    docker.images.add(IMAGE)
    there, lost = tmp_path / "there", tmp_path / "lost"
    there.mkdir()
    with pytest.raises(prepare.NotPrepared) as caught:
        run(replace(release, mounts=[str(there), str(lost)]), docker)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{lost}, which flags of tiny-a need, is missing")
