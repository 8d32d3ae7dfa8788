# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that the running Prometheus and Alertmanager monitor the fleet. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from .api import NoAnswer, Server

POLL_SECONDS = 1.0


class Observation:
    """The state of both services at one moment. Raises NoAnswer."""

    def __init__(self, prometheus: Server, alertmanager: Server) -> None:
        alertmanager.text("/-/ready")
        self.alertmanagers = prometheus.data("/api/v1/alertmanagers")["activeAlertmanagers"]
        self.targets: list[dict[str, Any]] = prometheus.data("/api/v1/targets?state=active")["activeTargets"]
        self.groups: list[dict[str, Any]] = prometheus.data("/api/v1/rules")["groups"]

    def missing(self, targets: Mapping[str, Sequence[str]], rules: Sequence[str]) -> list[str]:
        """The declared targets and rules that are missing, and the rules that fail."""
        known = {(target["scrapePool"], target["labels"].get("instance", "")) for target in self.targets}
        found = [
            f"Prometheus has no target {address} of the job {job}"
            for job, addresses in targets.items()
            for address in addresses
            if (job, address) not in known
        ]
        evaluated = {PurePath(group["file"]).name for group in self.groups}
        found += [f"Prometheus has no rules of {name}" for name in rules if name not in evaluated]
        found += [
            f"rule {rule['name']}: {rule.get('lastError', '')}"
            for group in self.groups
            for rule in group["rules"]
            if rule.get("health") == "err"
        ]
        return found if self.alertmanagers else [*found, "Prometheus has no Alertmanager"]

    def down(self) -> list[str]:
        """The targets that do not answer, including those that were not scraped yet."""
        return [
            f"{target['scrapePool']} of {target['labels'].get('node', '?')} ({target['scrapeUrl']}):"
            f" {target.get('lastError') or 'not scraped yet'}"
            for target in self.targets
            if target["health"] != "up"
        ]

    def scraped_since(self, moment: datetime) -> bool:
        """Whether every target was scraped after a moment. An older result may be out of date."""
        return all(datetime.fromisoformat(target["lastScrape"]) > moment for target in self.targets)


def watch(
    prometheus: Server, alertmanager: Server, targets: Mapping[str, Sequence[str]], rules: Sequence[str], seconds: float
) -> tuple[dict[str, Any], list[str]]:
    """Read until everything declared is there, or the time is over. If a target is down, waits for new scrapes of all.

    Returns two values: a dictionary with the number of targets `up`, the targets `down`, and the number of `rules`; and
    what is missing.
    """
    began, deadline = datetime.now(tz=UTC), time.monotonic() + seconds
    while True:
        settled = False
        found: dict[str, Any] = {"up": 0, "down": [], "rules": 0}
        try:
            seen = Observation(prometheus, alertmanager)
            missing = seen.missing(targets, rules)
            settled = not missing and (seen.scraped_since(began) or not seen.down())
            found["down"] = seen.down()
            found["up"] = len(seen.targets) - len(found["down"])
            found["rules"] = sum(len(group["rules"]) for group in seen.groups)
        except NoAnswer as error:
            missing = [str(error)]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            missing = [f"Prometheus answers in another form than this collection expects: {error!r}"]
        if settled or time.monotonic() >= deadline:
            return found, missing
        time.sleep(POLL_SECONDS)
