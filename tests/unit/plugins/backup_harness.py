# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with backups, for the tests of the modules: its options, its timers, and a restic that answers by its verb."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import restic
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

NODE: dict[str, Any] = {
    "repository": "/srv/x",
    "repository_checked": False,
    "password": "very-secret-1",
    "environment": {"AWS_SECRET_ACCESS_KEY": "very-secret-2"},
    "sftp_key": "very-secret-3",
    "known_hosts": ["store ssh-ed25519 AAAA"],
    "host": "n1",
    "paths": ["/etc/inference"],
    "keep": {"daily": 7},
    "schedules": {"backup": "02:30", "prune": "Sun 04:30", "check": ""},
}


class TimerSystemd:
    """A systemd with timers."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        on = {"ActiveState": "active", "UnitFileState": "enabled"}
        return {name: on if name in self.enabled else dict.fromkeys(on, "") for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] == "enable":
            self.enabled |= set(arguments[2:])
        if arguments[0] == "disable":
            self.enabled -= set(arguments[2:])
        return ""


def longest_gap(text: str) -> int | None:
    """The longest time between two runs of a schedule, in seconds.

    `soon` is no schedule, and `once` has no second run. Every other schedule is daily, or on Sundays.
    """
    if text == "soon":
        raise ValueError("Failed to parse")
    return None if text == "once" else 604800 if "Sun" in text else 86400


def answer_restic(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Outcome]) -> list[list[str]]:
    """A restic that answers by its verb; returns its calls."""
    calls: list[list[str]] = []

    def run(command: list[str], timeout: float, environment: dict[str, str]) -> Outcome:
        calls.append(command)
        return next(answer for verb, answer in answers.items() if verb in command)

    monkeypatch.setattr(restic.Restic.__init__, "__defaults__", (run, "restic"))
    return calls


SNAPSHOT = {
    "id": "ab" * 32,
    "short_id": "abababab",
    "time": "2026-11-20T02:30:00Z",
    "hostname": "n1",
    "tags": [],
}
"""A snapshot of the node, as restic lists it."""
