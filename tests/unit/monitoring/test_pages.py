# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries of dashboards and consoles are valid, and read metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FILES = Path(__file__).resolve().parents[3] / "roles/monitoring/files"
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
CONSOLES = sorted((FILES / "consoles").glob("*.html"))


def dashboard_queries(path: Path) -> Iterator[str]:
    """The queries of a dashboard, as they are written, with the names of its variables."""
    document = json.loads(path.read_text())
    # A row of panels has no queries.
    for panel in document["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (annotation["expr"] for annotation in document["annotations"]["list"])


def console_queries(path: Path) -> Iterator[str]:
    """The queries of a console template: its texts in quotes that look like queries, with a node in place of %s."""
    text = path.read_text()
    for action in re.findall(r"\{\{(.*?)\}\}", text, re.S):
        for word in re.findall(r'"((?:[^"\\]|\\.)*)"', action):
            query = word.replace('\\"', '"').replace("%s", '{node="n1"}').replace("%q", '"n1"')
            if re.search(r"[(:{]|_", query) and not query.startswith(("{node=", "^(")) and query != "instance_name":
                yield query


def queries() -> dict[str, list[str]]:
    found = {path.name: list(dashboard_queries(path)) for path in DASHBOARDS}
    return found | {path.name: list(console_queries(path)) for path in CONSOLES}


def test_all_dashboards_and_consoles_are_found() -> None:
    assert [path.stem for path in DASHBOARDS] == [
        "inference-fleet",
        "inference-gateway",
        "inference-history",
        "inference-model",
        "inference-node",
    ]
    assert [path.name for path in CONSOLES] == ["inference.html"]
    assert all(len(found) > 10 for found in queries().values())


def test_prometheus_understands_every_query(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"q:{number}", "expr": re.sub(r"\$\w+", "x", query)}
        for number, query in enumerate(query for found in queries().values() for query in found)
    ]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    result = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", queries())
def test_every_metric_of_a_query_exists(name: str, rules: Any, names_in: Any, real_metrics: set[str]) -> None:
    known = real_metrics | set(rules.records)
    unknown = {query: sorted(names_in(query) - known) for query in queries()[name]}
    assert {query: found for query, found in unknown.items() if found} == {}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_provisioned_unchanged(path: Path) -> None:
    """Its uid is its file's name, its data source and the variables of its queries are declared, no panels overlap."""
    document = json.loads(path.read_text())
    assert document["uid"] == path.stem and "id" not in document
    declared = {variable["name"] for variable in document["templating"]["list"]}
    used = {name for query in dashboard_queries(path) for name in re.findall(r"\$(\w+)", query)}
    assert used <= declared and "datasource" in declared
    panels = document["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells) and max(x for x, _y in cells) < 24


@pytest.mark.parametrize("path", CONSOLES, ids=lambda path: path.stem)
def test_a_console_loads_no_other_file(path: Path) -> None:
    """Debian's Prometheus has neither the scripts nor the styles of upstream's example consoles."""
    assert not re.search(r"<script|<link|src=|url\(|@import", path.read_text())
