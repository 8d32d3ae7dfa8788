# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl metrics`: text, JSON, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths

from .conftest import Run


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with nothing on it."""
    return Paths(tmp_path)


def test_the_command(paths: Paths, run: Run) -> None:
    paths.textfiles.mkdir(parents=True)
    code, output, _errors = run("metrics", "--publish", "node")
    assert code == 0
    assert sorted(path.name for path in paths.textfiles.iterdir()) == [
        "inference-gpus.prom",
        "inference-rdma.prom",
        "inference-recovery.prom",
        "inference-state.prom",
    ]
    assert output == ""
    code, output, _errors = run("metrics", "rdma")
    assert code == 0
    assert "inference_rdma_ports 0\n" in output
    code, _output, errors = run("metrics", "gpu")
    assert code == 2
    assert "gpus" in errors
    code, output, _errors = run("metrics", "--json", "state")
    assert code == 0
    assert json.loads(output)["collectors"][0]["problem"] == ""
