# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every alert fires alone in its cases, and not otherwise. Each alert has a severity, a subject and a next step."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Rules

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "roles/monitoring/files/rules"
RECORDING = RULES / "recording.yml"
CASES = Path(__file__).with_name("cases")
RUNBOOK = "https://github.com/baremetal-inference/ansible-collection/blob/main/docs/alerts.md"

pytestmark = pytest.mark.once

SUBJECTS = [path.stem for path in sorted(RULES.glob("*.yml")) if path.stem != "recording"]

TARGETS = {
    "@node1": 'job="node",node="n1",instance="n1:9100"',
    "@node2": 'job="node",node="n2",instance="n2:9100"',
    "@engine1": 'job="engine",node="n1",instance="n1:5005",instance_name="main",model="tiny-a",release="1"',
    # The same engine with any release, and with any release and model.
    "@instance1": 'job="engine",node="n1",instance="n1:5005",instance_name="main",model="tiny-a"',
    "@place1": 'job="engine",node="n1",instance="n1:5005",instance_name="main"',
    "@gateway1": 'job="gateway",node="g1",instance="g1:8404"',
    "@prometheus1": 'job="prometheus",node="m1",instance="m1:9090"',
    "@alertmanager1": 'job="alertmanager",node="m1",instance="m1:9093"',
}
"""The labels that targets have, as the role gives them."""

HEALTHY_NODE = {'up{job="node",node="healthy",instance="healthy:9100"}': "1x600"}
"""A healthy node: without any node, another alert would fire."""

SCOPES = {"instance": ("node", "instance_name"), "node": ("node",), "gateway": ("node",), "fleet": ()}
"""By scope of an alert: the labels that its summary names."""


def cases(subject: str) -> dict[str, dict[str, Any]]:
    """For each alert of a file: series that make the alert fire, and series that do not."""
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(labelled((CASES / f"{subject}.yml").read_text()))
    return loaded


def labelled(text: str) -> str:
    """The text with labels in place of words such as @node1."""
    for short, labels in TARGETS.items():
        text = text.replace(short, labels)
    return text


def variants(case: dict[str, Any]) -> list[dict[str, Any]]:
    """A case, and the variants in its `more`: other series for the same alert, by default at the same time."""
    common = {key: case[key] for key in ("at", "every", "labels") if key in case}
    return [case, *({**common, **one} for one in case.get("more", []))]


def firing(expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A query of promtool: exactly these alerts fire."""
    return [{"expr": 'ALERTS{alertstate="firing"}', "exp_samples": expected}]


def promtool_test(name: str, case: dict[str, Any], rule: dict[str, Any], quiet: bool) -> dict[str, Any]:
    series = {**({} if name == "NoNodeTargets" and not quiet else HEALTHY_NODE), **case["quiet" if quiet else "fires"]}
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
    tests: Sequence[tuple[str, dict[str, Any]]], rules: Any, promtool: str, scratch: Path, files: str = "*"
) -> None:
    """Let promtool test the rules of the files whose names match, and the recordings. `tests`: pairs of step and test.

    A test has only those recordings that its series feed, and only those alerts that can fire with its series. With all
    rules, promtool would take several times as long: promtool reads all rules again for each test, and evaluates all of
    them at each step.
    """
    chosen = sorted({*RULES.glob(f"{files}.yml")} - {RECORDING})
    together: dict[tuple[str, frozenset[str]], list[dict[str, Any]]] = {}
    for step, test in tests:
        series = [one["series"] for one in test["input_series"]]
        needed = frozenset(rules.fed(series) | rules.awake(series))
        together.setdefault((step, needed), []).append(test)
    paths = []
    for number, ((step, needed), same) in enumerate(together.items()):
        # Recordings first: alerts are made of them.
        groups = [group for path in (RECORDING, *chosen) for group in parts_of(path, needed)]
        kept = scratch / f"rules-{number}.yml"
        # JSON is YAML, and is written in a tenth of the time.
        kept.write_text(json.dumps({"groups": groups}, ensure_ascii=False))
        document = {
            "rule_files": [str(kept)],
            "evaluation_interval": step,
            "group_eval_order": [group["name"] for group in groups],
            "tests": same,
        }
        paths.append(scratch / f"test-{number}.yml")
        paths[-1].write_text(json.dumps(document, ensure_ascii=False))
    # The garbage collector would take half of promtool's time: it runs less often than usual, and on one processor.
    environment = {**os.environ, "GOGC": "400", "GOMAXPROCS": "1"}
    command = [promtool, "test", "rules", *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


@functools.cache
def groups_of(path: Path) -> list[dict[str, Any]]:
    """The groups of a file of rules."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())["groups"]
    return found


def parts_of(path: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """The groups of a file of rules, with these recordings and alerts alone."""
    found = [
        {**group, "rules": [rule for rule in group["rules"] if rule.get("record", rule.get("alert")) in names]}
        for group in groups_of(path)
    ]
    return [group for group in found if group["rules"]]


def test_promtool_accepts_the_rule_files(promtool: str) -> None:
    command = [promtool, "check", "rules", *map(str, RULES.glob("*.yml"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_alert_fires_alone_and_not_otherwise(
    subject: str, rules: Any, promtool: str, tmp_path: Path, quick: bool
) -> None:
    """In CI, only the alerts of the same file are tested: for all files, promtool takes more than twice as long."""
    known = cases(subject)
    assert list(known) == rules.files[subject], "one case for each alert, in the order of the rules"
    # A case that lasts days has longer steps: in steps of minutes, promtool would take minutes.
    tried = [(name, one) for name, case in known.items() for one in variants(case)]
    tests = [
        (one.get("every", "1m"), promtool_test(name, one, rules.alerts[name], quiet))
        for name, one in tried
        for quiet in (False, True)
        if ("quiet" if quiet else "fires") in one
    ]
    try_rules(tests, rules, promtool, tmp_path, subject if quick else "*")


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
def test_an_alert_continues_over_a_change_of_the_release(
    name: str, labels: str, since: int, series: dict[str, str], rules: Any, promtool: str, tmp_path: Path
) -> None:
    """A new release changes the labels of an engine's target. The alert must not end and fire again."""
    case = {"at": "", "labels": TARGETS[labels], "fires": {labelled(key): value for key, value in series.items()}}
    test = promtool_test(name, case, rules.alerts[name], False)
    (once,) = test["promql_expr_test"]
    test["promql_expr_test"] = [{**once, "eval_time": f"{minute}m"} for minute in range(since, 40)]
    try_rules([("1m", test)], rules, promtool, tmp_path)


def test_a_replica_set_is_reported_as_down_unless_operators_have_drained_all_of_it(
    rules: Any, promtool: str, tmp_path: Path
) -> None:
    """The file of cases does not have these series, because InstanceDrained fires as well."""
    name = "ReplicaSetDown"
    here, there = 'inference_drained{@node1,name="main"}', 'inference_drained{@node2,name="main"}'
    gave_up = 'inference_recovery_breaker_open{@node2,name="main"}'
    expected: list[tuple[bool, dict[str, str]]] = [
        (False, {here: "1x20", there: "1x20", gave_up: "0x20"}),
        # A drained node that reboots.
        (False, {here: "1x20", there: "1x2 stale"}),
        (True, {here: "1x20", there: "0x20"}),
        (True, {here: "0x20", 'inference_drained{@node1,name="other"}': "1x20"}),
        # Recovery drains what it gives up.
        (True, {here: "1x20", there: "1x20", gave_up: "1x20"}),
    ]
    tests = []
    for down, drained in expected:
        series = {'haproxy_backend_active_servers{@gateway1,proxy="set_main"}': "0x20", **drained}
        known = {labelled(key): values for key, values in series.items()}
        case = {"at": "10m", "labels": labelled('@gateway1,proxy="set_main"'), "fires": known, "quiet": known}
        test = promtool_test(name, case, rules.alerts[name], quiet=not down)
        test["promql_expr_test"][0]["expr"] = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        tests.append(("1m", test))
    try_rules(tests, rules, promtool, tmp_path)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_branch_of_an_alert_is_tried(subject: str, rules: Any) -> None:
    """An alert has a case for each part of its `or`: otherwise a wrong part would go unnoticed."""
    for name, case in cases(subject).items():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", rules.alerts[name]["expr"])
        branches = len(re.findall(r"\bor\b", bare)) + 1
        assert sum("fires" in one for one in variants(case)) >= branches, name


def test_every_alert_has_a_severity_a_subject_and_an_action(rules: Any) -> None:
    for name, rule in rules.alerts.items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        scope = rule["labels"]["scope"]
        annotations = rule["annotations"]
        assert set(annotations) == {"summary", "action", "runbook_url"}, name
        for label in SCOPES[scope]:
            assert f"$labels.{label} " in annotations["summary"] or f"$labels.{label}}}" in annotations["summary"], name
        assert annotations["runbook_url"] == f"{RUNBOOK}#{name.lower()}", name
        assert len(annotations["action"]) > 20, name


def test_every_alert_has_a_section_in_the_guide(rules: Any) -> None:
    """Each alert has a complete section, and each section has an alert."""
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


def test_alerts_that_inhibit_other_alerts_are_informational(rules: Any) -> None:
    """Alertmanager's inhibit rules compare these labels of the two alerts."""
    for name, scope in (("InstanceDrained", "instance"), ("NodeInMaintenance", "node")):
        assert rules.alerts[name]["labels"] == {"severity": "info", "scope": scope}


def test_every_metric_of_a_rule_exists(rules: Any, names_in: Any, real_metrics: set[str]) -> None:
    """An alert with a mistyped metric, or a metric that an exporter has renamed, would never fire."""
    expressions = {**{name: rule["expr"] for name, rule in rules.alerts.items()}, **rules.records}
    unknown = {name: sorted(names_in(text) - real_metrics - set(rules.records)) for name, text in expressions.items()}
    assert {name: found for name, found in unknown.items() if found} == {}


def test_the_metrics_of_an_expression_are_found(names_in: Any) -> None:
    text = 'sum by (le) (rate(vllm:a_bucket{le="x"}[5m])) / on (node) group_left () (up{job=~"b{2}"} > 0)'
    text += " offset 1h unless c"
    assert names_in(text) == {"vllm:a_bucket", "up", "c"}


def test_a_promtool_test_has_the_recordings_that_its_series_feed() -> None:
    expressions = {"rate": "rate(tokens[5m])", "sum": "sum(rate)", "other": "queue", "none": "absent(up)"}
    rules = Rules({"recordings": [{"record": name, "expr": text} for name, text in expressions.items()]}, {})
    assert rules.fed(['tokens{node="n1"}']) == {"rate", "sum", "none"}
    assert rules.fed([]) == {"none"}


def test_a_promtool_test_has_the_alerts_that_can_fire_with_its_series() -> None:
    alerts = {
        "Slow": "sum > 5",
        "Queue": "queue > 1",
        "Both": "queue unless up",
        "Gone": "absent(rate)",
        "Quiet": 'x unless ALERTS{alertname="Slow"}',
    }
    groups = {
        "recordings": [{"record": "sum", "expr": "sum(tokens)"}],
        "alerts": [{"alert": name, "expr": text} for name, text in alerts.items()],
    }
    rules = Rules(groups, {})
    assert rules.awake(['tokens{node="n1"}']) == {"Slow", "Gone", "Quiet"}
    assert rules.awake(["up", "x"]) == {"Both", "Gone", "Quiet"}


def test_every_metric_of_the_collection_is_in_the_guide(real_metrics: set[str]) -> None:
    listed = re.findall(r"^\| `(inference_\w+)", (ROOT / "docs/metrics.md").read_text(), re.M)
    assert sorted(listed) == sorted(name for name in real_metrics if name.startswith("inference_"))
