# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Prometheus monitors the fleet, with a fake of its API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import watch as module
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import Server
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.watch import Observation, watch

TARGET: dict[str, Any] = {
    "scrapePool": "node",
    "scrapeUrl": "http://192.0.2.11:9100/metrics",
    "labels": {"instance": "192.0.2.11:9100", "node": "gpu1"},
    "health": "up",
    "lastError": "",
    "lastScrape": "2026-11-22T08:52:20.123456789Z",
}
RULE: dict[str, Any] = {"name": "TargetDown", "health": "ok"}


class Fake(Server):
    """A server with the given Alertmanagers, targets and rules."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("http://127.0.0.1:9090")
        object.__setattr__(self, "answers", {"alertmanagers": [{}], "targets": [TARGET], "rules": [RULE], **answers})

    def text(self, path: str) -> str:
        return "ok"

    def data(self, path: str) -> Any:
        answers: dict[str, Any] = self.__dict__["answers"]
        return {
            "activeAlertmanagers": answers["alertmanagers"],
            "activeTargets": answers["targets"],
            "groups": [{"file": "/etc/prometheus/rules/targets.yml", "rules": answers["rules"]}],
        }


WANTED = {"node": ["192.0.2.11:9100"]}


def test_a_prometheus_with_all_targets_and_rules_lacks_nothing() -> None:
    seen = Observation(Fake(), Fake())
    assert seen.missing(WANTED, ["targets.yml"]) == [] and seen.down() == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"targets": []}, "no target 192.0.2.11:9100 of the job node"),
        ({"alertmanagers": []}, "no Alertmanager"),
        ({"rules": [{**RULE, "health": "err", "lastError": "many-to-many"}]}, "rule TargetDown: many-to-many"),
    ],
)
def test_missing_targets_alertmanagers_and_failed_rules_are_named(answers: dict[str, Any], said: str) -> None:
    assert said in "\n".join(Observation(Fake(**answers), Fake()).missing(WANTED, ["targets.yml"]))


def test_files_whose_rules_were_not_loaded_are_named() -> None:
    assert Observation(Fake(), Fake()).missing(WANTED, ["more.yml"]) == ["Prometheus has no rules of more.yml"]


def test_a_target_that_does_not_answer_is_named_with_the_reason() -> None:
    down = {**TARGET, "health": "down", "lastError": "connection refused"}
    (text,) = Observation(Fake(targets=[down]), Fake()).down()
    assert "node of gpu1" in text and "connection refused" in text


def test_the_method_scraped_since_is_true_only_if_every_target_was_scraped() -> None:
    moment = datetime(2026, 11, 22, 8, 52, tzinfo=UTC)
    never = {**TARGET, "lastScrape": "0001-01-01T00:00:00Z"}
    assert Observation(Fake(), Fake()).scraped_since(moment)
    assert not Observation(Fake(), Fake()).scraped_since(moment.replace(minute=53))
    assert not Observation(Fake(targets=[TARGET, never]), Fake()).scraped_since(moment)


def test_targets_and_rules_are_counted() -> None:
    down = {**TARGET, "health": "down", "lastScrape": "2999-01-01T00:00:00Z"}
    found, missing = watch(Fake(targets=[down]), Fake(), WANTED, ["targets.yml"], 60)
    assert (missing, found["up"], found["rules"]) == ([], 0, 1)
    assert found["down"] == ["node of gpu1 (http://192.0.2.11:9100/metrics): not scraped yet"]
    assert watch(Fake(), Fake(), WANTED, ["targets.yml"], 60)[0] == {"up": 1, "down": [], "rules": 1}


def test_prometheus_is_asked_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: 10.0 * len(pauses))
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    prometheus = Fake(targets=[])
    assert watch(prometheus, Fake(), WANTED, [], 25)[1] == ["Prometheus has no target 192.0.2.11:9100 of the job node"]
    assert pauses == [module.POLL_SECONDS] * 3
    nothing = {"up": 0, "down": [], "rules": 0}
    silent = Server("http://127.0.0.1:1")
    found, (why,) = watch(silent, silent, WANTED, [], 0)
    assert found == nothing and "127.0.0.1:1/-/ready" in why


@pytest.mark.parametrize("target", [{"labels": {}}, None, {**TARGET, "labels": None}, {**TARGET, "lastScrape": "soon"}])
def test_an_answer_of_prometheus_in_another_form_is_reported(target: Any) -> None:
    # The second `lastScrape` is read only if the first is later than the call.
    targets = [{**TARGET, "health": "down", "lastScrape": "2099-11-22T08:52:20Z"}, target]
    _found, missing = watch(Fake(targets=targets), Fake(), {}, [], 0)
    assert len(missing) == 1 and missing[0].startswith("Prometheus answers in another form")
