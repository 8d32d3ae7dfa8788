# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot would end, on a machine below a temporary root."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node import in_use


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The states of units; a unit that is not here is inactive."""
    known: dict[str, str] = {}
    monkeypatch.setattr(systemd, "active_state", lambda unit: known.get(unit, "inactive"))
    return known


@pytest.fixture
def node(tmp_path: Path) -> Paths:
    """A node with two instances, and a program on a GPU in addition to the driver's helpers."""
    paths = Paths(tmp_path)
    paths.instances.mkdir(parents=True)
    for name in ("main", "coder"):
        paths.instance(name).write_text("{}")
    for pid, name in ((7, "nvidia-persiste"), (8, "nv-fabricmanage"), (9, "python3")):
        directory = tmp_path / f"proc/{pid}/fd"
        directory.mkdir(parents=True)
        (directory.parent / "comm").write_text(f"{name}\n")
        (directory.parent / "cgroup").write_text(f"0::/system.slice/{name}.service\n")
        (directory / "3").symlink_to("/dev/nvidia0")
    return paths


def test_instances_that_serve_or_answer_their_last_requests_are_in_use(node: Paths, states: dict[str, str]) -> None:
    states |= {"vllm@main.service": "active", "vllm@coder.service": "deactivating"}
    assert in_use.gather(node) == ["the instance coder runs", "the instance main runs"]


def test_a_program_on_a_gpu_is_in_use_and_the_drivers_helpers_are_not(node: Paths, states: dict[str, str]) -> None:
    # An engine that fails without a driver is started again and again.
    states |= {"vllm@main.service": "failed", "vllm@coder.service": "activating"}
    assert in_use.gather(node) == ["python3 (pid 9, python3.service) uses a GPU"]


def test_a_bare_machine_is_not_in_use(tmp_path: Path, states: dict[str, str]) -> None:
    assert in_use.gather(Paths(tmp_path)) == []
