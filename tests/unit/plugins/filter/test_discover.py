# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that write an inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ansible_collections.baremetal.inference.plugins.filter.discover import FilterModule

FILTERS = FilterModule().filters()

MACHINE: dict[str, Any] = {
    "address": "10.0.0.11",
    "login": {"stdout": "uid=0 login=admin python=/usr/bin/python3"},
    "host": {"system": {"hostname": "gw-01", "architecture": "x86_64", "debian": 12, "addresses": []}},
    "gpu": {"ansible_facts": {"gpus": []}},
    "rdma": {"ansible_facts": {"rdma_devices": []}},
}


def test_a_second_discovery_has_no_questions_and_no_changes(tmp_path: Path) -> None:
    results = {"10.0.0.11": MACHINE, "10.0.0.12": {"login": {"unreachable": True, "msg": "no route"}}}
    found = FILTERS["discovery"](results, str(tmp_path), {})
    assert not found["known"] and found["changes"] == [] and found["questions"]
    assert "10.0.0.12: is left out: cannot be reached: no route" in found["lines"]
    assert yaml.safe_load(found["files"]["hosts.yml"])["all"]["vars"]["ansible_user"] == "admin"
    for path, content in found["files"].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    again = FILTERS["discovery"](results, str(tmp_path), {"record": True})
    assert again["known"] and again["changes"] == [] and again["questions"] == [] and again["keys"] == {}
    assert list(again["files"]) == ["host_vars/gw-01/discovered.yml"]


def test_each_vault_has_new_secrets() -> None:
    one, two = (yaml.safe_load(FILTERS["discovery_vault"](32)) for _number in range(2))
    assert len({*one.values(), *two.values()}) == 4 and all(len(value) == 64 for value in one.values())
