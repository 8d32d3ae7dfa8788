# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that an engine publishes, and the metrics that queries of dashboards read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml
from node import PROJECT, Node

FILES = PROJECT / "roles/monitoring/files"

PREFIX = "vllm:"
"""The prefix of the names of an engine's metrics. Names of recording rules begin with their level."""


def panels() -> list[dict[str, Any]]:
    """The rows and panels of the dashboard of a model. A row comes before its panels."""
    return list(json.loads((FILES / "dashboards/inference-model.json").read_text())["panels"])


def recorded() -> dict[str, str]:
    """The expressions of the recording rules, by name."""
    groups = yaml.safe_load((FILES / "rules/recording.yml").read_text())["groups"]
    return {rule["record"]: rule["expr"] for group in groups for rule in group["rules"]}


def read_by(query: str) -> list[str]:
    """The engine's metrics that a query reads, itself or by recording rules, in the query's order."""
    rules = recorded()
    found: list[str] = []
    for name in re.findall(r"\b[a-z]+:[\w:]+", query):
        found += [name] if name.startswith(PREFIX) else read_by(rules[name])
    return list(dict.fromkeys(found))


def totals(node: Node, port: int, names: Iterable[str]) -> dict[str, float]:
    """The sum of the series of each metric that an engine publishes. A metric without series is left out."""
    text = node.run(f"curl --silent --fail --max-time 30 http://127.0.0.1:{port}/metrics")
    numbers = {
        name: re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
        for name in dict.fromkeys(names)
    }
    return {name: sum(map(float, found)) for name, found in numbers.items() if found}
