#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_probe
short_description: Ask the running Prometheus and Alertmanager whether they watch the fleet
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Asks, on their own machine, whether Prometheus has all targets and has evaluated all rules, and whether it has an
    Alertmanager. Tries again until it is so, or the time is over; then it fails.
  - A target that did not answer when it was last asked is reported, and no failure of this machine.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - It only asks.
  diff_mode:
    support: none
options:
  url:
    description: Where this machine reaches Prometheus.
    type: str
    required: true
  alertmanager_url:
    description: Where it reaches Alertmanager.
    type: str
    required: true
  targets:
    description: By job, the targets that Prometheus must have, as C(address:port).
    type: dict
    required: true
  rules:
    description: The names of the files whose rules it must have evaluated.
    type: list
    elements: str
    default: []
  seconds:
    description: How long to try.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Ask whether the fleet is watched
  baremetal.inference.monitoring_probe:
    url: http://127.0.0.1:9090
    alertmanager_url: http://127.0.0.1:9093
    targets: {node: ["192.0.2.11:9100"]}
    rules: [targets.yml]
"""

RETURN = r"""
up:
  description: How many targets answer.
  returned: always
  type: int
down:
  description: The targets that do not, each with why.
  returned: always
  type: list
  elements: str
rules:
  description: How many rules were evaluated.
  returned: always
  type: int
"""

import time
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer, Server
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.config import PASSWORD
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.units import DIRECTORY

POLL_SECONDS = 1.0


class Look:
    """One look at both. Raises NoAnswer."""

    def __init__(self, prometheus: Server, alertmanager: Server) -> None:
        alertmanager.text("/-/ready")
        self.alertmanagers = prometheus.data("/api/v1/alertmanagers")["activeAlertmanagers"]
        self.targets: list[dict[str, Any]] = prometheus.data("/api/v1/targets?state=active")["activeTargets"]
        self.groups: list[dict[str, Any]] = prometheus.data("/api/v1/rules")["groups"]

    def missing(self, targets: dict[str, list[str]], rules: list[str]) -> list[str]:
        """What must be there, and is not."""
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
        """Who does not answer; who was not asked yet counts among them."""
        return [
            f"{target['scrapePool']} of {target['labels'].get('node', '?')} ({target['scrapeUrl']}):"
            f" {target.get('lastError') or 'not asked yet'}"
            for target in self.targets
            if target["health"] != "up"
        ]

    def asked_since(self, moment: datetime) -> bool:
        """Whether every target was asked after a moment, so that what is known of them is no old story."""
        return all(datetime.fromisoformat(target["lastScrape"]) > moment for target in self.targets)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "alertmanager_url": {"type": "str", "required": True},
            "targets": {"type": "dict", "required": True},
            "rules": {"type": "list", "elements": "str", "default": []},
            "seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    params = module.params
    secret = Path(DIRECTORY) / PASSWORD
    password = secret.read_text(encoding="utf-8").strip() if secret.exists() else ""
    prometheus, alertmanager = Server(params["url"], password), Server(params["alertmanager_url"], password)
    began, deadline = datetime.now(tz=UTC), time.monotonic() + params["seconds"]
    while True:
        settled = False
        result: dict[str, Any] = {"changed": False, "up": 0, "down": [], "rules": 0}
        try:
            look = Look(prometheus, alertmanager)
            missing = look.missing(params["targets"], params["rules"])
            settled = not missing and (look.asked_since(began) or not look.down())
            result["down"] = look.down()
            result["up"] = len(look.targets) - len(result["down"])
            result["rules"] = sum(len(group["rules"]) for group in look.groups)
        except NoAnswer as error:
            missing = [str(error)]
        if settled or time.monotonic() >= deadline:
            break
        time.sleep(POLL_SECONDS)
    if missing:
        module.fail_json(msg="\n- ".join(["The fleet is not watched as declared:", *missing]), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
