# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a monitoring host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan, export, plan


def test_the_role_defaults_make_all_files_that_prometheus_names(
    made: Callable[..., Plan], targets: dict[str, Any]
) -> None:
    result = made()
    assert not result.problems
    config = yaml.safe_load(result.secrets["prometheus.yml"])
    assert set(config["rule_files"]) <= set(result.files)
    named = {name for job in config["scrape_configs"] for sd in job["file_sd_configs"] for name in sd["files"]}
    assert named <= set(result.files)
    assert json.loads(result.files["targets/node.json"]) == targets["groups"]["node"]
    assert json.loads(result.files["targets/dcgm.json"]) == []
    assert result.asked == {"node": ["192.0.2.11:9100"]}
    assert result.url == "http://127.0.0.1:9090"
    assert "--web.listen-address=127.0.0.1:9090" in result.units["prometheus.service"]
    assert "basic_auth" not in result.secrets["prometheus.yml"]


def test_problems_of_the_targets_are_problems_of_the_plan(settings: dict[str, Any], role: Path) -> None:
    result = plan({**settings, "port": 0}, {"groups": {}, "problems": ["gpu2 has no address"]}, role / "files", dump)
    assert len(result.problems) == 2


def test_an_export_has_the_files_of_an_external_prometheus(targets: dict[str, Any], role: Path) -> None:
    files = export(targets, role / "files", dump)
    config = yaml.safe_load(files["prometheus.yml"])
    assert [job["job_name"] for job in config["scrape_configs"]] == ["node", "engine", "gateway", "dcgm"]
    assert set(config["rule_files"]) <= set(files)
    assert "targets/node.json" in files and "targets/prometheus.json" not in files
    assert "inhibit_rules" in yaml.safe_load(files["alertmanager.yml"])
