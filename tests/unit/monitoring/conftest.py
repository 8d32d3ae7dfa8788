# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule files, and promtool, which checks and runs the rules."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.backup import state as backup_state
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import serving
from ansible_collections.baremetal.inference.plugins.module_utils.node import textfile
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "roles/monitoring/files/rules"
SAMPLES = Path(__file__).with_name("samples")
CACHE = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")


@dataclass(frozen=True)
class Rules:
    """All rule files."""

    groups: dict[str, list[dict[str, Any]]]
    """The rules of each group, by its name."""
    files: dict[str, list[str]]
    """The names of each file's alerts."""

    @cached_property
    def alerts(self) -> dict[str, dict[str, Any]]:
        return {rule["alert"]: rule for rules in self.groups.values() for rule in rules if "alert" in rule}

    @cached_property
    def records(self) -> dict[str, str]:
        return {rule["record"]: rule["expr"] for rules in self.groups.values() for rule in rules if "record" in rule}

    @cached_property
    def _sources(self) -> dict[str, set[str]]:
        return {name: metrics_of(expression) for name, expression in self.records.items()}

    def fed(self, series: Iterable[str]) -> set[str]:
        """The recording rules that can have a result from these series. All others select nothing."""
        given = {name for one in series for name in metrics_of(one)}
        fed = {name for name, expression in self.records.items() if WITHOUT_SERIES.search(expression)}
        while more := {name for name, sources in self._sources.items() if sources & (given | fed)} - fed:
            fed |= more
        return fed

    def awake(self, series: Iterable[str]) -> set[str]:
        """The alerts that can fire with these series. The expressions of all others select nothing."""
        given = {*ALWAYS, *self.fed(series), *(name for one in series for name in metrics_of(one))}
        expressions = {name: rule["expr"] for name, rule in self.alerts.items()}
        return {
            name
            for name, expression in expressions.items()
            if WITHOUT_SERIES.search(expression) or metrics_of(expression) & given or not metrics_of(expression)
        }


@pytest.fixture(scope="session")
def rules() -> Rules:
    groups: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, list[str]] = {}
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            groups[group["name"]] = group["rules"]
            files.setdefault(path.stem, []).extend(rule["alert"] for rule in group["rules"] if "alert" in rule)
    return Rules(groups, files)


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool. Without the program, tests fail: they are not skipped in silence."""
    found = CACHE / "promtool" if (CACHE / "promtool").exists() else shutil.which("promtool")
    if not found:
        pytest.fail("promtool is missing: run tests/tools/setup unit")
    return str(found)


OF_SCRAPES = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS"}
"""Series that Prometheus itself makes: of each scrape, and of its alerts."""

ALWAYS = {"ALERTS"}
"""Series that Prometheus makes of other alerts."""

WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}

GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
NAME = re.compile(r"(?<![\w:.])[A-Za-z_:][\w:]*(?!\s*\()(?![\w:])")


WITHOUT_SERIES = re.compile(r"\b(absent|absent_over_time|vector|time)\s*\(")
"""Functions that have a result without any series."""


@cache
def metrics_of(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = re.sub(r"\boffset\s+\w+", " ", GROUPING.sub(" ", bare))
    return {name for name in NAME.findall(bare) if name.casefold() not in WORDS}


@pytest.fixture(scope="session")
def names_in() -> Callable[[str], set[str]]:
    return metrics_of


@pytest.fixture(scope="session")
def real_metrics() -> set[str]:
    """The metrics that every recorded version of an exporter publishes, and the collection's own metrics."""
    scrapes: dict[str, list[set[str]]] = {}
    for path in SAMPLES.glob("*.txt"):
        scrapes.setdefault(path.stem.rpartition("-")[0], []).append(set(path.read_text().split()))
    recorded = {name for versions in scrapes.values() for name in set.intersection(*versions)}
    helps = (textfile._HELP, backup_state._HELP, serving.METRICS, catalogue.HELP)
    own = {name for help_texts in helps for name in help_texts}
    own |= {name for one in catalogue.COLLECTORS.values() for name in one.help}
    return recorded | own | OF_SCRAPES
