# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl doctor`: text, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import OK

from .conftest import Run


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with nothing on it."""
    return Paths(tmp_path)


def test_results_are_printed_and_an_unknown_check_is_wrong_usage(tmp_path: Path, run: Run) -> None:
    code, output, _errors = run("doctor", "gpu-count", "system-reboot", "--json")
    document = json.loads(output)
    assert code == 0
    assert [(one["name"], one["status"]) for one in document["checks"]] == [("gpu-count", OK), ("system-reboot", OK)]
    (tmp_path / "run").mkdir()
    (tmp_path / "run/reboot-required").write_text("")
    (tmp_path / "run/reboot-required.pkgs").write_text("linux-image-amd64\n")
    code, output, _errors = run("doctor", "system-reboot")
    assert code == 1
    assert "linux-image-amd64" in output
    code, _output, errors = run("doctor", "gpu-xid")
    assert code == 2
    assert "gpu-xids" in errors


def test_a_check_that_is_off_runs_only_by_its_name(paths: Paths, run: Run) -> None:
    files.write_json(paths.doctor_settings, {"schema": 1, "off": ["system-reboot"]})
    (paths.root / "run").mkdir()
    (paths.root / "run/reboot-required").write_text("")
    names = [one["name"] for one in json.loads(run("doctor", "--json")[1])["checks"]]
    assert "system-reboot" not in names and "gpu-count" in names
    assert run("doctor", "system-reboot")[0] == 1
