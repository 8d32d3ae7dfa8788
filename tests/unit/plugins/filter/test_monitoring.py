# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of a monitoring host: its targets, its files, and the YAML that they are written as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.monitoring import FilterModule

ROLE = Path(__file__).parents[4] / "roles/monitoring"

HOSTVARS = {
    "gpu1": {
        "inference_address": "192.0.2.11",
        "instances": [{"name": "main", "model": "large", "port": 5005}],
    },
    "gw1": {"ansible_host": "192.0.2.21"},
    "mon1": {"ansible_host": "192.0.2.31"},
}

FILTERS = FilterModule().filters()


@pytest.fixture
def settings() -> dict[str, Any]:
    """The role's defaults, without the prefix of its variables."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    return {name.removeprefix("monitoring_"): value for name, value in defaults.items()}


@pytest.fixture
def targets() -> dict[str, Any]:
    """The targets of the Prometheus of mon1."""
    found: dict[str, Any] = FILTERS["monitoring_targets"](HOSTVARS, ["gpu1"], ["gw1"], ["mon1"], own="mon1")
    return found


def addresses(targets: dict[str, Any], job: str) -> list[str]:
    return [address for group in targets["groups"][job] for address in group["targets"]]


def test_targets_are_by_job_and_the_own_host_is_scraped_at_127_0_0_1(targets: dict[str, Any]) -> None:
    assert targets["problems"] == []
    assert addresses(targets, "node") == ["192.0.2.11:9100", "192.0.2.21:9100", "127.0.0.1:9100"]
    assert addresses(targets, "engine") == ["192.0.2.11:5005"]
    assert addresses(targets, "gateway") == ["192.0.2.21:8404"]
    assert addresses(FILTERS["monitoring_targets"](HOSTVARS, gateways=["gw1"]), "node") == ["192.0.2.21:9100"]


def test_a_plan_holds_all_files(settings: dict[str, Any], targets: dict[str, Any]) -> None:
    made = FILTERS["monitoring_plan"](settings, targets, str(ROLE / "files"))
    assert made["problems"] == []
    config = yaml.safe_load(made["secrets"]["prometheus.yml"])
    assert set(config["rule_files"]) <= set(made["files"])
    assert "192.0.2.11:5005" in made["files"]["targets/engine.json"]


def test_a_plan_with_a_mistake_has_no_files(settings: dict[str, Any], targets: dict[str, Any]) -> None:
    made = FILTERS["monitoring_plan"]({**settings, "port": 0}, targets, str(ROLE / "files"))
    (problem,) = made["problems"]
    assert "monitoring_port" in str(problem)
    assert (made["files"], made["secrets"]) == ({}, {})


def test_an_export_has_the_targets_and_the_configuration_of_an_external_prometheus(targets: dict[str, Any]) -> None:
    files = FILTERS["monitoring_export"](targets, str(ROLE / "files"))
    assert "192.0.2.11:5005" in files["targets/engine.json"]
    assert yaml.safe_load(files["prometheus.yml"])["scrape_configs"]


def test_the_files_of_the_role_must_be_there(settings: dict[str, Any], targets: dict[str, Any], tmp_path: Path) -> None:
    missing = str(tmp_path / "files")
    for call in (
        lambda: FILTERS["monitoring_plan"](settings, targets, missing),
        lambda: FILTERS["monitoring_export"](targets, missing),
    ):
        with pytest.raises(AnsibleFilterError, match="is not a directory: give the directory"):
            call()
