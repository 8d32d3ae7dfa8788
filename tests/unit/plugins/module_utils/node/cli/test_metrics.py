# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl metrics`: text, JSON, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue as doctor
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host, Thresholds

from .conftest import Run


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with nothing on it."""
    return Paths(tmp_path)


def test_the_doctors_limits_are_those_of_the_node(paths: Paths, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Thresholds] = []

    def examine(_checks: object, host: Host) -> list[check.Result]:
        seen.append(host.thresholds)
        return []

    monkeypatch.setattr(check, "run", examine)
    files.write_json(paths.doctor_settings, doctor.to_json(doctor.Settings(thresholds=Thresholds(free_percent=20))))
    assert run("metrics", "doctor")[0] == 0
    paths.doctor_settings.write_text("{")
    # Only the doctor's collector reports damaged settings.
    assert run("metrics", "doctor")[0] == 1 and run("metrics", "state")[0] == 0
    assert seen == [Thresholds(free_percent=20)]


def test_each_collector_publishes_before_the_next_one_begins(
    paths: Paths, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If systemd ends a round early, the collectors that were finished have published their metrics."""
    paths.textfiles.mkdir(parents=True)
    published: list[int] = []
    collect = catalogue.collect

    def counted(*arguments: Any) -> catalogue.Page:
        published.append(len(list(paths.textfiles.iterdir())))
        return collect(*arguments)

    monkeypatch.setattr(catalogue, "collect", counted)
    assert run("metrics", "--publish", "node")[0] == 0
    assert published == [0, 1, 2, 3]


def test_metrics_are_published_or_printed(paths: Paths, run: Run) -> None:
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
