# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a monitoring host, made from the role's variables. Private to the collection."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import config, units
from .places import ALERTMANAGER, HEADER, PROMETHEUS
from .settings import WHERE, read_settings
from .targets import JOBS

Dump = Callable[[Mapping[str, Any]], str]
"""Renders YAML. The caller gives this function, because only the controller is sure to have a library for YAML."""


@dataclass(frozen=True)
class Plan:
    """The files that a monitoring host must have, or only the problems in the input."""

    problems: list[str] = field(default_factory=list)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that all users may read, by path below /etc/prometheus."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Files that may hold a password, by path below /etc/prometheus."""
    web: str = ""
    """The text of web.yml without the users."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The drop-in of each service, by the service's name."""
    url: str = ""
    alertmanager_url: str = ""
    """The URLs at which the host itself reaches Prometheus and Alertmanager."""
    asked: Mapping[str, list[str]] = field(default_factory=dict)
    """The addresses of the targets that Prometheus must have, by job."""
    rules: list[str] = field(default_factory=list)
    """The names of the files of rules that Prometheus must have."""
    dashboards: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each dashboard, by file name."""


def plan(raw: Mapping[str, Any], targets: Mapping[str, Any], shipped: Path, dump: Dump) -> Plan:
    """Plan all files, or list all mistakes. ``shipped`` is the role's directory `files`."""
    settings, problems = read_settings(raw)
    found = [*(str(problem) for problem in problems), *(f"{WHERE}: {text}" for text in targets.get("problems", ()))]
    heartbeat = config.heartbeat_rules(settings)
    own = rule_files(shipped) | ({f"{config.HEARTBEAT}.yml": _headed(dump(heartbeat))} if heartbeat else {})
    found += [
        f"{WHERE}: monitoring_extra_rules: {name} is the name of a file of the role: choose another name"
        for name in sorted(set(own) & set(settings.extra_rules))
    ]
    if found:
        return Plan(found)
    scheme = "https" if settings.tls else "http"
    rules = {**own, **settings.extra_rules}
    return Plan(
        files={
            **{f"{config.RULES}/{name}": text for name, text in rules.items()},
            **target_files(targets.get("groups", {})),
            **{f"{Path(units.CONSOLES).name}/{name}": text for name, text in _texts(shipped / "consoles").items()},
        },
        secrets={
            "prometheus.yml": _headed(dump(config.prometheus(settings, rules))),
            "alertmanager.yml": _headed(dump(config.alertmanager(settings))),
        },
        web=_headed(dump(config.web(settings)) if settings.tls else ""),
        units={
            PROMETHEUS: units.prometheus(settings),
            ALERTMANAGER: units.alertmanager(settings),
        },
        url=f"{scheme}://{settings.asked_at}:{settings.port}",
        alertmanager_url=f"{scheme}://{settings.asked_at}:{settings.alertmanager_port}",
        asked={
            job: [address for group in found for address in group["targets"]]
            for job, found in targets.get("groups", {}).items()
        },
        rules=sorted(rules),
        dashboards={
            name: hashlib.sha256(text.encode()).hexdigest() for name, text in _texts(shipped / "dashboards").items()
        },
    )


def export(targets: Mapping[str, Any], shipped: Path, dump: Dump) -> dict[str, str]:
    """Targets, rules and jobs for a Prometheus elsewhere, and inhibitions for its Alertmanager, by path."""
    rules = rule_files(shipped)
    jobs = {
        "rule_files": [f"{config.RULES}/{name}" for name in sorted(rules)],
        "scrape_configs": config.scrape_configs(),
    }
    return {
        **{f"{config.RULES}/{name}": text for name, text in rules.items()},
        **{
            name: text
            for name, text in target_files(targets.get("groups", {})).items()
            if Path(name).stem not in ("prometheus", "alertmanager")
        },
        "prometheus.yml": _headed(dump(jobs)),
        "alertmanager.yml": _headed(dump({"inhibit_rules": [dict(rule) for rule in config.INHIBIT_RULES]})),
    }


def rule_files(shipped: Path) -> dict[str, str]:
    """The role's rules, by file name."""
    return {name: text for name, text in _texts(shipped / "rules").items() if name.endswith((".yml", ".yaml"))}


def target_files(groups: Mapping[str, Any]) -> dict[str, str]:
    """A file for every job. Without targets, a job has an empty list, so that its first target needs no reload."""
    return {
        f"{config.TARGETS}/{job}.json": json.dumps(list(groups.get(job, ())), indent=1, sort_keys=True) + "\n"
        for job in JOBS
    }


def _texts(directory: Path) -> dict[str, str]:
    """The text of each file in a directory, by name, without subdirectories and hidden files."""
    found = sorted(directory.iterdir()) if directory.is_dir() else []
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in found
        if path.is_file() and not path.name.startswith(".")
    }


def _headed(text: str) -> str:
    return f"{HEADER}\n{text}"
