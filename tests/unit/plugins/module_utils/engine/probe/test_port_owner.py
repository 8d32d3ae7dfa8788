# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process listens on an instance's port, and when all of /proc is searched for this process."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import DockerUnavailable
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import port_owner
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.port_owner import PortOwner
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target

from ...conftest import FakeProc

TARGET = Target("127.0.0.1", 5005, ["main"])


class Docker:
    """Reports the first process of the only container."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        self.asked = 0

    def inspect(self, container: str) -> dict[str, Any] | None:
        assert container == "vllm-main"
        self.asked += 1
        if self.pid is None:
            raise DockerUnavailable("the Docker engine does not answer")
        return {"State": {"Pid": self.pid}} if self.pid else None


def owner(docker: Any, proc: FakeProc) -> PortOwner:
    return PortOwner(docker, proc.root)


def test_the_containers_own_socket_is_looked_up_once(proc: FakeProc) -> None:
    proc.process(100, namespace=2, inode=77)
    proc.listen(TARGET.port, inode=77)
    docker = Docker(100)
    found = owner(docker, proc)
    assert [found.stranger(TARGET, "vllm-main") for _time in range(3)] == [""] * 3
    assert docker.asked == 1


def test_another_process_is_named_until_it_is_gone(proc: FakeProc) -> None:
    proc.process(100, namespace=2, inode=77)
    proc.process(999, namespace=3, inode=78)
    proc.listen(TARGET.port, inode=78)
    found = owner(Docker(100), proc)
    for _time in range(2):
        assert found.stranger(TARGET, "vllm-main") == "pid 999 (python3 -m server)"
    proc.lines.clear()
    proc.listen(TARGET.port, inode=77)
    assert found.stranger(TARGET, "vllm-main") == ""


def test_another_socket_is_looked_up_again(proc: FakeProc) -> None:
    proc.process(100, namespace=2, inode=77)
    proc.listen(TARGET.port, inode=77)
    found = owner(Docker(100), proc)
    assert found.stranger(TARGET, "vllm-main") == ""
    proc.process(999, namespace=3, inode=78)
    proc.listen(TARGET.port, inode=78)
    assert found.stranger(TARGET, "vllm-main") == "pid 999 (python3 -m server)"


@pytest.mark.parametrize("pid", [None, 0])
def test_without_a_container_no_process_counts_as_foreign(
    proc: FakeProc, pid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.process(999, namespace=3, inode=78)
    proc.listen(TARGET.port, inode=78)
    monkeypatch.setattr(port_owner, "ownership", pytest.fail)
    assert owner(Docker(pid), proc).stranger(TARGET, "vllm-main") == ""
