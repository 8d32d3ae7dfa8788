# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the removal of Docker removes of NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Stage

FILE = "roles/docker/tasks/remove.yml"
STAND_INS = {"apt": "apt_sources", "systemd_service": "docker_daemon", "file": "disks"}
"""The modules that take the places of Ansible's own, which would change this machine."""
DROP_IN = "/etc/systemd/system/nvidia-cdi-refresh.service.d"


def removal() -> str:
    text = (Path(__file__).parents[3] / FILE).read_text()
    for module, other in STAND_INS.items():
        text = text.replace(f"ansible.builtin.{module}:", f"baremetal.inference.{other}:")
    return text


@pytest.mark.once
@pytest.mark.parametrize(("manages", "removed"), [("auto", True), ("never", False)])
def test_the_toolkit_is_removed_whole_unless_another_tool_manages_it(
    staged: Callable[..., Stage], manages: str, removed: bool
) -> None:
    stage = staged(["apt_packages", *STAND_INS.values()], {FILE: removal()})
    included = {"name": "baremetal.inference.docker", "tasks_from": "remove"}
    tasks = [{"name": "Remove", "ansible.builtin.include_role": included, "vars": {"docker_nvidia": manages}}]
    succeeded, output = stage.run([{"name": "Remove", "hosts": "all", "tasks": tasks}], "one")
    assert succeeded, output
    (pins,) = stage.calls(module="apt_packages")
    (packages,) = stage.calls(module="apt_sources")
    paths = [call["path"] for call in stage.calls(module="disks")]
    found = ("nvidia-container-toolkit" in [one["name"] for one in pins["pins"]], DROP_IN in paths)
    assert found == (removed, removed)
    assert ("nvidia-container-toolkit" in packages["name"]) is removed
    assert {one["name"] for one in pins["pins"]} >= {"docker"} and "docker.io" in packages["name"]
    assert "/etc/docker" in paths
