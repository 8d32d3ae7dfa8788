# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of stale CDI specifications that the role docker moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Stage

SPEC = {"path": "/etc/cdi/none.yaml", "stale": "is for driver 550"}


@pytest.mark.once
def test_check_mode_does_not_report_that_a_specification_was_moved(staged: Callable[..., Stage]) -> None:
    included = {"name": "baremetal.inference.docker", "tasks_from": "nvidia/stale"}
    tasks = [
        {"name": "Read", "baremetal.inference.gpu_facts": {}},
        {"name": "Move", "ansible.builtin.include_role": included},
    ]
    stage = staged(["gpu_facts"])
    seen = [({"module": "gpu_facts"}, {"ansible_facts": {"cdi": {"specs": [SPEC]}}})]
    succeeded, output = stage.run([{"name": "Move", "hosts": "all", "tasks": tasks}], "one", "--check", seen=seen)
    assert succeeded, output
    assert "one: would move to /var/lib/inference/cdi-removed" in output, output
    assert SPEC["stale"] in output
