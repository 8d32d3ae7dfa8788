# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that `inferctl metrics` gathers: what tools and files tell, and what is told where one fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = Paths(tmp_path)
    paths.textfiles.mkdir(parents=True)
    assert inferctl.main(["metrics", "--publish", "node"], paths) == 0
    assert sorted(path.name for path in paths.textfiles.iterdir()) == [
        "inference-gpus.prom",
        "inference-rdma.prom",
        "inference-recovery.prom",
        "inference-state.prom",
    ]
    assert capsys.readouterr().out == ""
    assert inferctl.main(["metrics", "rdma"], paths) == 0
    assert "inference_rdma_ports 0\n" in capsys.readouterr().out
    assert inferctl.main(["metrics", "gpu"], paths) == 2
    assert "gpus" in capsys.readouterr().err
    assert inferctl.main(["metrics", "--json", "state"], paths) == 0
    assert json.loads(capsys.readouterr().out)["collectors"][0]["problem"] == ""
