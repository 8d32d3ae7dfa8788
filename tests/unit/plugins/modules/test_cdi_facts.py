# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module cdi_facts: it gathers what was asked for, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.container_gpus import Container, Found
from ansible_collections.baremetal.inference.plugins.modules import cdi_facts

from .conftest import RunModule

LOST = Container("1" * 64, "main", "gpus", 7, ["/dev/nvidia0"], {"/dev/nvidia0": "Operation not permitted"})
KEPT = Container("2" * 64, "other", "cdi", 8, ["/dev/nvidia1"])


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whether Docker was asked; two containers have GPUs, and one has lost them."""
    asked: list[str] = []

    def look(_run: Any) -> Found:
        asked.append("look")
        return Found([LOST, KEPT])

    monkeypatch.setattr(cdi_facts, "look", look)
    return asked


def test_specifications_alone_by_default(docker: list[str], run_module: RunModule, tmp_path: Any) -> None:
    found = run_module(cdi_facts, root=str(tmp_path))
    assert (list(found["ansible_facts"]), docker, found["changed"]) == (["cdi"], [], False)
    assert found["ansible_facts"]["cdi"]["specs"] == []
    assert "is not there" in found["ansible_facts"]["cdi"]["refresh_reason"]


def test_containers_alone(docker: list[str], run_module: RunModule) -> None:
    found = run_module(cdi_facts, gather_subset=["containers"])["ansible_facts"]
    assert list(found) == ["container_gpus"]
    gpus = found["container_gpus"]
    assert (gpus["error"], gpus["lost"], docker) == (None, ["main"], ["look"])
    assert gpus["containers"][0] == {
        "id": "1" * 64,
        "name": "main",
        "request": "gpus",
        "devices": ["/dev/nvidia0"],
        "lost": {"/dev/nvidia0": "Operation not permitted"},
        "error": None,
    }


def test_all_and_none(docker: list[str], run_module: RunModule, tmp_path: Any) -> None:
    found = run_module(cdi_facts, gather_subset=["all"], root=str(tmp_path))["ansible_facts"]
    assert set(found) == {"cdi", "container_gpus"}
    assert run_module(cdi_facts, gather_subset=["min"])["ansible_facts"] == {}


def test_no_time_at_all_is_refused(docker: list[str], run_module: RunModule) -> None:
    found = run_module(cdi_facts, gather_subset=["containers"], timeout=0)
    assert (found["failed"], docker) == (True, [])
