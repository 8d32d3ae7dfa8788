# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A draft model: stored, used by the engine, and counted by the metrics that the dashboard reads.

The last file: the chat model gets a draft, and loses its adapters.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from node import PROJECT, Node, playbook

UPDATE = "baremetal.inference.update_model"

RECORD = "instance:inference_draft_tokens_accepted:ratio_rate5m"

FILES = PROJECT / "roles/monitoring/files"

HOST: dict[str, Any] = yaml.safe_load((PROJECT / "molecule/kinds/hosts.yml").read_text())["inference"]["hosts"]["deb13"]


def counters() -> tuple[str, str]:
    """The names of the accepted and of all tokens of drafts, in the rule that the dashboard shows."""
    groups = yaml.safe_load((FILES / "rules/recording.yml").read_text())["groups"]
    (expression,) = [rule["expr"] for group in groups for rule in group["rules"] if rule.get("record") == RECORD]
    accepted, drafted = re.findall(r"vllm:\w+", expression)
    return accepted, drafted


def titles() -> list[str]:
    """The panels of the dashboard that show the share of accepted tokens."""
    panels = json.loads((FILES / "dashboards/inference-model.json").read_text())["panels"]
    return [panel["title"] for panel in panels if RECORD in json.dumps(panel.get("targets", []))]


@pytest.mark.full
def test_a_draft_is_stored_and_its_tokens_are_accepted(deb13: Node) -> None:
    chat = HOST["models"]["tiny-a"]
    draft = {"model": "tiny-draft", "num_speculative_tokens": 3}
    models = {
        **{name: entry for name, entry in HOST["models"].items() if "adapter" not in entry},
        "tiny-a": {**chat, "speculative-config": draft},
        # The same weights as the chat model, which accepts nearly each token.
        "tiny-draft": {"model": chat["model"]},
    }
    # The engine has no second replica.
    playbook("deb13", name=UPDATE, models=models, instance="main", allow_downtime=True)
    assert "tiny-draft" in deb13.run("ls /mnt/models").split()
    assert "/tiny-draft/" in deb13.run("docker inspect --format '{{.Args}}' vllm-main")
    assert deb13.ask() == "I am tiny-a."

    told = deb13.run("curl --silent --max-time 30 http://127.0.0.1:5005/metrics")
    accepted, drafted = (
        sum(float(number) for number in re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", told, re.MULTILINE))
        for name in counters()
    )
    assert drafted > 0, "the engine has other names for these counters"
    assert titles() == ["Accepted tokens of the draft"]
    assert 0.5 < accepted / drafted <= 1, (accepted, drafted)
