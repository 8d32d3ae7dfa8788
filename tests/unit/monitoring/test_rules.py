# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every alert fires for what it is meant for, it alone, and not otherwise; and says what an operator needs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "roles/monitoring/files/rules"
CASES = Path(__file__).with_name("cases")
RUNBOOK = "https://github.com/baremetal-inference/ansible-collection/blob/main/docs/alerts.md"

pytestmark = pytest.mark.once

SUBJECTS = [path.stem for path in sorted(RULES.glob("*.yml")) if path.stem != "recording"]

TARGETS = {
    "@node1": 'job="node",node="n1",instance="n1:9100"',
    "@node2": 'job="node",node="n2",instance="n2:9100"',
    "@engine1": 'job="engine",node="n1",instance="n1:5005",instance_name="main",model="tiny-a",release="1"',
    # The same engine, whatever its release; and whatever its model, too.
    "@instance1": 'job="engine",node="n1",instance="n1:5005",instance_name="main",model="tiny-a"',
    "@place1": 'job="engine",node="n1",instance="n1:5005",instance_name="main"',
    "@gateway1": 'job="gateway",node="g1",instance="g1:8404"',
    "@prometheus1": 'job="prometheus",node="m1",instance="m1:9090"',
    "@alertmanager1": 'job="alertmanager",node="m1",instance="m1:9093"',
}
"""The labels that targets have, as the role gives them."""

NODE_BESIDE = {'up{job="node",node="beside",instance="beside:9100"}': "1x600"}
"""A node that is well: a fleet without any is an alert of its own."""

SCOPES = {"instance": ("node", "instance_name"), "node": ("node",), "gateway": ("node",), "fleet": ()}
"""The labels that an alert about such a thing names in its summary."""


def cases(subject: str) -> dict[str, dict[str, Any]]:
    """What makes each alert of a file fire, and what does not."""
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(labelled((CASES / f"{subject}.yml").read_text()))
    return loaded


def labelled(text: str) -> str:
    """With the labels that a word like @node1 stands for."""
    for short, labels in TARGETS.items():
        text = text.replace(short, labels)
    return text


def variants(case: dict[str, Any]) -> list[dict[str, Any]]:
    """A case and what it has `more` of: other series for the same alert, at its time unless they say otherwise."""
    common = {key: case[key] for key in ("at", "every", "labels") if key in case}
    return [case, *({**common, **one} for one in case.get("more", []))]


def firing(expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All alerts that fire, and no other."""
    return [{"expr": 'ALERTS{alertstate="firing"}', "exp_samples": expected}]


def promtool_test(name: str, case: dict[str, Any], rule: dict[str, Any], quiet: bool) -> dict[str, Any]:
    series = {**({} if name == "NoNodeTargets" and not quiet else NODE_BESIDE), **case["quiet" if quiet else "fires"]}
    labels = {"alertname": name, "alertstate": "firing", **rule["labels"]}
    shown = ",".join(filter(None, [case["labels"], *(f'{key}="{value}"' for key, value in labels.items())]))
    expected = [] if quiet else [{"labels": f"ALERTS{{{shown}}}", "value": 1}]
    return {
        "name": f"{name} {'does not fire' if quiet else 'fires'}",
        "interval": case.get("every", "1m"),
        "input_series": [{"series": key, "values": str(values)} for key, values in series.items()],
        "promql_expr_test": [{**test, "eval_time": case["at"]} for test in firing(expected)],
    }


def try_rules(
    tests: list[dict[str, Any]], step: str, rules: Any, promtool: str, scratch: Path, files: str = "*"
) -> None:
    """Have promtool try the rules of the files whose names match, and the recordings."""
    chosen = sorted({*RULES.glob(f"{files}.yml"), RULES / "recording.yml"})
    groups = {group["name"] for path in chosen for group in yaml.safe_load(path.read_text())["groups"]}
    document = {
        "rule_files": [str(path) for path in chosen],
        "evaluation_interval": step,
        # Recordings first: alerts are made of them.
        "group_eval_order": sorted(groups & set(rules.groups), key=lambda name: "alerts" in name),
        "tests": tests,
    }
    path = scratch / "test.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    # Less often than as usual, promtool looks for memory to give back: it would take a third of its time.
    environment = {**os.environ, "GOGC": "400"}
    command = [promtool, "test", "rules", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_files_are_sound(promtool: str) -> None:
    command = [promtool, "check", "rules", *map(str, RULES.glob("*.yml"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_alert_fires_alone_and_not_otherwise(
    subject: str, rules: Any, promtool: str, tmp_path: Path, quick: bool
) -> None:
    """In CI alone among the alerts of its file: promtool takes more than twice as long for all files."""
    known = cases(subject)
    assert list(known) == rules.files[subject], "one case for each alert, in the order of the rules"
    # A case of days in steps of minutes would take minutes itself.
    tried = [(name, one) for name, case in known.items() for one in variants(case)]
    for step in dict.fromkeys(one.get("every", "1m") for _name, one in tried):
        tests = [
            promtool_test(name, one, rules.alerts[name], quiet)
            for name, one in tried
            if one.get("every", "1m") == step
            for quiet in (False, True)
            if ("quiet" if quiet else "fires") in one
        ]
        try_rules(tests, step, rules, promtool, tmp_path, subject if quick else "*")


@pytest.mark.parametrize(
    ("name", "labels", "since", "series"),
    [
        (
            "EngineQueueLong",
            "@instance1",
            20,
            {
                'vllm:num_requests_waiting{@instance1,release="1",engine="0"}': "50x30 stale",
                'vllm:num_requests_waiting{@instance1,release="2",engine="0"}': "_x30 50x30",
            },
        ),
        (
            "EngineNotScraped",
            "@place1",
            20,
            {
                'up{@place1,model="tiny-a",release="1"}': "0x30 stale",
                'up{@place1,model="tiny-b",release="2"}': "_x30 0x30",
                'inference_probe_verdict{@node1,name="main",verdict="healthy"}': "1x60",
            },
        ),
        (
            "EngineRestartsOften",
            "@place1",
            31,
            {
                'process_start_time_seconds{@place1,model="tiny-a",release="1"}': "1x9 2x9 3x10 stale",
                'process_start_time_seconds{@place1,model="tiny-b",release="2"}': "_x30 4x30",
            },
        ),
    ],
)
def test_an_alert_goes_on_over_another_release(
    name: str, labels: str, since: int, series: dict[str, str], rules: Any, promtool: str, tmp_path: Path
) -> None:
    """The labels of an engine's target follow what it runs: nobody is told that it is over, and then of it again."""
    case = {"at": "", "labels": TARGETS[labels], "fires": {labelled(key): value for key, value in series.items()}}
    test = promtool_test(name, case, rules.alerts[name], False)
    (once,) = test["promql_expr_test"]
    test["promql_expr_test"] = [{**once, "eval_time": f"{minute}m"} for minute in range(since, 40)]
    try_rules([test], "1m", rules, promtool, tmp_path)


def test_a_set_is_down_unless_people_have_drained_all_of_it(rules: Any, promtool: str, tmp_path: Path) -> None:
    """A test of its own: of what is drained, InstanceDrained tells as well."""
    name = "ReplicaSetDown"
    here, there = 'inference_drained{@node1,name="main"}', 'inference_drained{@node2,name="main"}'
    gave_up = 'inference_recovery_breaker_open{@node2,name="main"}'
    told: list[tuple[bool, dict[str, str]]] = [
        (False, {here: "1x20", there: "1x20", gave_up: "0x20"}),
        # A drained node that reboots.
        (False, {here: "1x20", there: "1x2 stale"}),
        (True, {here: "1x20", there: "0x20"}),
        (True, {here: "0x20", 'inference_drained{@node1,name="other"}': "1x20"}),
        # Recovery drains what it gives up.
        (True, {here: "1x20", there: "1x20", gave_up: "1x20"}),
    ]
    tests = []
    for down, drained in told:
        series = {'haproxy_backend_active_servers{@gateway1,proxy="set_main"}': "0x20", **drained}
        known = {labelled(key): values for key, values in series.items()}
        case = {"at": "10m", "labels": labelled('@gateway1,proxy="set_main"'), "fires": known, "quiet": known}
        test = promtool_test(name, case, rules.alerts[name], quiet=not down)
        test["promql_expr_test"][0]["expr"] = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        tests.append(test)
    try_rules(tests, "1m", rules, promtool, tmp_path)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_branch_of_an_alert_is_tried(subject: str, rules: Any) -> None:
    """As many ways to fire as the expression has: one that is typed wrong would hide behind the others."""
    for name, case in cases(subject).items():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", rules.alerts[name]["expr"])
        branches = len(re.findall(r"\bor\b", bare)) + 1
        assert sum("fires" in one for one in variants(case)) >= branches, name


def test_every_alert_says_how_bad_what_about_and_what_to_do(rules: Any) -> None:
    for name, rule in rules.alerts.items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        scope = rule["labels"]["scope"]
        annotations = rule["annotations"]
        assert set(annotations) == {"summary", "action", "runbook_url"}, name
        for label in SCOPES[scope]:
            assert f"$labels.{label} " in annotations["summary"] or f"$labels.{label}}}" in annotations["summary"], name
        assert annotations["runbook_url"] == f"{RUNBOOK}#{name.lower()}", name
        assert len(annotations["action"]) > 20, name


def test_every_alert_has_its_section(rules: Any) -> None:
    """A section for each alert, in which no part is missing, and none of an alert that is gone."""
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", (ROOT / "docs/alerts.md").read_text(), re.M | re.S))
    assert list(sections) == [name for subject in sections_order() for name in rules.files[subject]]
    for name, text in sections.items():
        rule = rules.alerts[name]
        assert text.strip().startswith(f"*{rule['labels']['severity']}, about the {rule['labels']['scope']}.*"), name
        for part in ("Look", "Do", "False alarm"):
            assert f"- **{part}**: " in text, f"{name}: {part}"


def sections_order() -> list[str]:
    """The files in the order of the chapters."""
    titles = re.findall(r"^## (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.M)
    names = {"Gateways": "gateway"}
    found = [names.get(title, title.lower()) for title in titles]
    assert sorted(found) == SUBJECTS
    return found


def test_what_silences_others_is_itself_only_told(rules: Any) -> None:
    """Alertmanager holds alerts back by these two: they must have the labels that it compares."""
    for name, scope in (("InstanceDrained", "instance"), ("NodeInMaintenance", "node")):
        assert rules.alerts[name]["labels"] == {"severity": "info", "scope": scope}


def test_every_metric_exists(rules: Any, names_in: Any, real_metrics: set[str]) -> None:
    """A name that is typed wrong, or that an exporter has changed, would never fire."""
    expressions = {**{name: rule["expr"] for name, rule in rules.alerts.items()}, **rules.records}
    unknown = {name: sorted(names_in(text) - real_metrics - set(rules.records)) for name, text in expressions.items()}
    assert {name: found for name, found in unknown.items() if found} == {}


def test_names_are_found_in_an_expression(names_in: Any) -> None:
    text = 'sum by (le) (rate(vllm:a_bucket{le="x"}[5m])) / on (node) group_left () (up{job=~"b{2}"} > 0)'
    text += " offset 1h unless c"
    assert names_in(text) == {"vllm:a_bucket", "up", "c"}


def test_every_metric_of_ours_is_in_the_guide(real_metrics: set[str]) -> None:
    listed = re.findall(r"^\| `(inference_\w+)", (ROOT / "docs/metrics.md").read_text(), re.M)
    assert sorted(listed) == sorted(name for name in real_metrics if name.startswith("inference_"))
