# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module monitoring_probe, before a Prometheus that tells what the test says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer, Server
from ansible_collections.baremetal.inference.plugins.modules.monitoring_probe import Look

TARGET: dict[str, Any] = {
    "scrapePool": "node",
    "scrapeUrl": "http://192.0.2.11:9100/metrics",
    "labels": {"instance": "192.0.2.11:9100", "node": "gpu1"},
    "health": "up",
    "lastError": "",
    "lastScrape": "2026-11-22T08:52:20.123456789Z",
}
RULE: dict[str, Any] = {"name": "TargetDown", "health": "ok"}


class Told(Server):
    """Answers of the API, by path."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("http://127.0.0.1:9090")
        object.__setattr__(self, "answers", {"alertmanagers": [{}], "targets": [TARGET], "rules": [RULE], **answers})

    def text(self, path: str) -> str:
        return "ok"

    def data(self, path: str) -> Any:
        told: dict[str, Any] = self.__dict__["answers"]
        return {
            "activeAlertmanagers": told["alertmanagers"],
            "activeTargets": told["targets"],
            "groups": [{"file": "/etc/prometheus/rules/targets.yml", "rules": told["rules"]}],
        }


WANTED = {"node": ["192.0.2.11:9100"]}


def test_all_is_well() -> None:
    look = Look(Told(), Told())
    assert look.missing(WANTED, ["targets.yml"]) == [] and look.down() == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"targets": []}, "no target 192.0.2.11:9100 of the job node"),
        ({"alertmanagers": []}, "no Alertmanager"),
        ({"rules": [{**RULE, "health": "err", "lastError": "many-to-many"}]}, "rule TargetDown: many-to-many"),
    ],
)
def test_what_is_missing_is_named(answers: dict[str, Any], said: str) -> None:
    assert said in "\n".join(Look(Told(**answers), Told()).missing(WANTED, ["targets.yml"]))


def test_rules_that_were_not_loaded_are_named() -> None:
    assert Look(Told(), Told()).missing(WANTED, ["more.yml"]) == ["Prometheus has no rules of more.yml"]


def test_who_does_not_answer_is_named_with_the_reason() -> None:
    down = {**TARGET, "health": "down", "lastError": "connection refused"}
    (text,) = Look(Told(targets=[down]), Told()).down()
    assert "node of gpu1" in text and "connection refused" in text


def test_what_is_known_of_a_target_is_new_when_it_was_asked_since() -> None:
    moment = datetime(2026, 11, 22, 8, 52, tzinfo=UTC)
    never = {**TARGET, "lastScrape": "0001-01-01T00:00:00Z"}
    assert Look(Told(), Told()).asked_since(moment)
    assert not Look(Told(), Told()).asked_since(moment.replace(minute=53))
    assert not Look(Told(targets=[TARGET, never]), Told()).asked_since(moment)


def test_nobody_answers() -> None:
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1/-/ready"):
        Server("http://127.0.0.1:1").text("/-/ready")
