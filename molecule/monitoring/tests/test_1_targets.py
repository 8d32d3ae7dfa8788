# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets, rules and access of a monitoring host, and refused input."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node import PROJECT, Node, changes, wait_for
from watcher import Watcher, shipped_rules, without

WEBHOOKS = ("molecule-hook-51ac", "molecule-beat-77c1")
"""The paths of the webhooks, which are secrets."""

PASSWORDS = ("molecule-watcher-9b7c31", *WEBHOOKS)


def shipped() -> set[str]:
    """The names of all rules that the role installs."""
    return {rule.get("alert") or rule["record"] for rule in shipped_rules()}


def test_every_target_answers(watcher: Watcher, deb12: Node, deb13: Node) -> None:
    both = {(job, name) for job in ("node", "engine") for name in (deb12.name, deb13.name)}
    wanted = both | {(job, deb12.name) for job in ("gateway", "prometheus", "alertmanager")}
    wait_for("all targets are up", lambda: watcher.targets() == dict.fromkeys(wanted, "up"), 60)
    assert shipped() <= watcher.rules()


def test_targets_have_the_labels_that_rules_use(watcher: Watcher, deb12: Node, deb13: Node) -> None:
    engines = {series["metric"]["node"]: series["metric"] for series in watcher.query('up{job="engine"}')}
    for name, rack in ((deb12.name, "r1"), (deb13.name, None)):
        found = engines[name]
        assert (found["instance_name"], found["model"], found.get("rack")) == ("main", "tiny-a", rack)
        assert found["release"].isdigit() and found["task"] == "generate"
    assert watcher.query("vllm:num_requests_running")
    assert watcher.query("haproxy_server_status")
    said = wait_for("the textfiles are read", lambda: watcher.query("inference_drained"), 60)
    assert {(one["metric"]["node"], one["metric"]["name"]) for one in said} == {
        (deb12.name, "main"),
        (deb13.name, "main"),
    }


def test_a_request_without_the_password_is_refused(watcher: Watcher) -> None:
    user = f"{watcher.user}:{watcher.password}"
    for port, path in ((9090, "/api/v1/targets"), (9090, "/metrics"), (9093, "/api/v2/alerts")):
        assert watcher.status(port, path) == "401"
        assert watcher.status(port, path, user=f"{watcher.user}:wrong") == "401"
        assert watcher.status(port, path, user=user) == "200"


def test_prometheus_has_the_pages_of_the_runbooks(watcher: Watcher) -> None:
    text = (PROJECT / "docs/alerts.md").read_text()
    pages = {*re.findall(r"MONITORING:9090(/[\w/-]+(?:\.html)?)", text), *re.findall(r" (/classic/[\w-]+)", text)}
    user = f"{watcher.user}:{watcher.password}"
    assert {page: watcher.status(9090, page, user=user) for page in pages} == dict.fromkeys(pages, "200")
    assert len(pages) >= 4


def test_passwords_are_in_no_file_that_others_read_and_in_no_log(watcher: Watcher) -> None:
    node = watcher.node
    for password in PASSWORDS:
        found = node.run(f"grep -rl -e {password} /etc /var/lib/inference /var/log /run 2>/dev/null", check=False)
        readers = [node.run(f"stat -c '%a %G' {path}") for path in found.splitlines()]
        assert set(readers) <= {"640 prometheus"}, found
        # A search in the right places finds this file, which has the paths of the webhooks.
        assert password not in WEBHOOKS or "/etc/prometheus/alertmanager.yml" in found.splitlines()
        assert password not in node.run("journalctl --no-pager --quiet | grep -v curl", check=False)
    # The password itself is in no file of /etc: Prometheus has its hash.
    assert not node.run(f"grep -rl {watcher.password} /etc", check=False)


def test_only_the_monitoring_host_can_read_metrics(watcher: Watcher, deb12: Node, deb13: Node) -> None:
    for port in (9100, 9090, 9093, 5005):
        assert watcher.status(port, "/metrics", node=deb13) == "000", port
    for port in (9100, 5005):
        found = deb12.run(
            f"curl --silent --max-time 3 --output /dev/null http://{deb13.address}:{port}/metrics && echo in"
        )
        assert found == "in"


def test_nodes_can_read_the_state_of_their_replica_set_and_other_hosts_cannot(
    watcher: Watcher, deb12: Node, deb13: Node
) -> None:
    """The controller, which is neither a node nor a monitoring host, reaches the port for clients, not 8404."""
    asked = deb13.run(f"curl --silent --fail --max-time 3 http://{deb12.address}:8404/sets/main")
    assert set(json.loads(asked)["servers"]) == {deb12.name, deb13.name}
    socket.create_connection((deb12.address, 8000), timeout=3).close()
    with pytest.raises(TimeoutError):
        socket.create_connection((deb12.address, 8404), timeout=3).close()


def test_a_second_run_changes_nothing(watcher: Watcher, deb12: Node, deb13: Node) -> None:
    output = watcher.playbook(limit=f"{deb12.name},{deb13.name}")
    assert changes(output) == 0, output


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"monitoring_users": {}}, "monitoring_users: is empty"),
        ({"monitoring_users": {"operator": ""}}, "monitoring_users: the password of operator must be a text of"),
        ({"monitoring_scrape_seconds": 0}, "monitoring_scrape_seconds: 0"),
        ({"gateway_metrics_port": 70000}, "the port of its target gateway is 70000"),
        (
            {"monitoring_extra_rules": {"mine.yml": "groups: [{name: a, rules: [{alert: A, expr: 'sum('}]}]"}},
            "parse error",
        ),
        ({"monitoring_receivers": [{"name": "ops", "carrier_pigeon_configs": []}]}, "carrier_pigeon_configs"),
        ({"monitoring_tls_certificate": "/etc/none.pem", "monitoring_tls_key": "/etc/none.key"}, "none.pem"),
    ],
    ids=["no-users", "no-password", "setting", "target", "rule", "receiver", "certificate"],
)
def test_a_mistake_is_refused_and_the_running_configuration_stays(
    watcher: Watcher, extra: dict[str, Any], said: str
) -> None:
    before = watcher.files()
    output = watcher.playbook(check=False, **extra)
    assert said in " ".join(output.replace("\\n", " ").replace('\\"', '"').split()), output[-3000:]
    assert watcher.files() == before
    assert shipped() <= watcher.rules()


def test_targets_follow_a_node_that_leaves_the_inventory_and_comes_back(
    watcher: Watcher, deb12: Node, deb13: Node, tmp_path: Path
) -> None:
    before = watcher.node.run("systemctl show --property=MainPID,ExecMainStartTimestamp prometheus.service")
    watcher.playbook(inventory=without(deb13, tmp_path))
    wait_for("the targets are gone", lambda: {name for _job, name in watcher.targets()} == {deb12.name}, 60)
    watcher.playbook()
    wait_for("the targets are back", lambda: watcher.targets().get(("node", deb13.name)) == "up", 60)
    # Changed targets need neither a reload nor a restart.
    assert watcher.node.run("systemctl show --property=MainPID,ExecMainStartTimestamp prometheus.service") == before


def test_the_export_has_the_files_for_another_prometheus(watcher: Watcher, deb12: Node, tmp_path: Path) -> None:
    watcher.playbook(monitoring_export_path=str(tmp_path / "export"))
    names = {str(path.relative_to(tmp_path / "export")) for path in (tmp_path / "export").rglob("*.*")}
    assert {"prometheus.yml", "alertmanager.yml", "targets/node.json", "rules/targets.yml"} <= names
    assert f"{deb12.address}:9100" in (tmp_path / "export/targets/node.json").read_text()


@pytest.fixture
def with_tls(watcher: Watcher, tmp_path: Path) -> Iterator[Watcher]:
    """The monitoring host with the files of a certificate, which, at first, only root can read."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=monitoring.example.com", "-days", "1"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        *subject,
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(made, check=True, capture_output=True)
    watcher.node.run("mkdir -p /etc/ssl/monitoring")
    for path in (key, certificate):
        argv = watcher.node.argv("sh", "-c", f"umask 077; cat > /etc/ssl/monitoring/{path.name}")
        subprocess.run(argv, input=path.read_bytes(), check=True)
    yield watcher
    watcher.playbook()
    watcher.node.run("rm -r /etc/ssl/monitoring")


@pytest.mark.full
def test_with_tls_prometheus_and_alertmanager_serve_no_plain_http(with_tls: Watcher) -> None:
    watcher = with_tls
    paths: dict[str, Any] = {
        "monitoring_tls_certificate": "/etc/ssl/monitoring/cert.pem",
        "monitoring_tls_key": "/etc/ssl/monitoring/key.pem",
    }
    before = watcher.files()
    assert "permission denied" in watcher.playbook(check=False, **paths)
    assert watcher.files() == before
    watcher.node.run("chgrp prometheus /etc/ssl/monitoring/*.pem; chmod 640 /etc/ssl/monitoring/*.pem")
    watcher.playbook(**paths)
    user = f"{watcher.user}:{watcher.password}"
    for port in (9090, 9093):
        assert watcher.status(port, "/-/ready", user=user, scheme="https") == "200"
        assert watcher.status(port, "/-/ready", scheme="https") == "401"
        assert watcher.status(port, "/-/ready", user=user) == "400"
    assert changes(watcher.playbook(**paths)) == 0


def test_alertmanager_starts_again_although_its_log_filter_hangs(watcher: Watcher) -> None:
    """A separate process removes the paths of webhooks from the log, and may lag behind."""
    watcher.node.run("pkill -STOP --exact sed && systemctl restart prometheus-alertmanager.service")
    user = f"{watcher.user}:{watcher.password}"
    wait_for("Alertmanager answers", lambda: watcher.status(9093, "/-/ready", user=user) == "200", 30)
