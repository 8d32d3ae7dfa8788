# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a monitoring host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.filter.monitoring import dump
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan, export, plan
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.redaction import redacted, without_secrets

ROLE = Path(__file__).parents[5] / "roles/monitoring"
TARGETS: dict[str, Any] = {
    "groups": {"node": [{"targets": ["192.0.2.11:9100"], "labels": {"node": "gpu1"}}]},
    "problems": [],
}


def made(**changed: Any) -> Plan:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    settings = {name.removeprefix("monitoring_"): value for name, value in defaults.items()}
    return plan({**settings, **changed}, TARGETS, ROLE / "files", dump)


def test_the_defaults_make_a_complete_set() -> None:
    result = made()
    assert not result.problems
    config = yaml.safe_load(result.secrets["prometheus.yml"])
    assert set(config["rule_files"]) <= set(result.files)
    named = {name for job in config["scrape_configs"] for sd in job["file_sd_configs"] for name in sd["files"]}
    assert named <= set(result.files)
    assert json.loads(result.files["targets/node.json"]) == TARGETS["groups"]["node"]
    assert json.loads(result.files["targets/dcgm.json"]) == []
    assert result.asked == {"node": ["192.0.2.11:9100"]}
    assert result.url == "http://127.0.0.1:9090"
    assert "--web.listen-address=127.0.0.1:9090" in result.units["prometheus.service"]
    assert "basic_auth" not in result.secrets["prometheus.yml"]


def test_without_receivers_nobody_is_told() -> None:
    config = yaml.safe_load(made().secrets["alertmanager.yml"])
    assert config["route"]["receiver"] == "nobody"
    assert config["receivers"] == [{"name": "nobody"}]


def test_what_only_informs_reaches_nobody_whom_no_route_of_the_site_names() -> None:
    routes = [{"matchers": ['alertname="InstanceDrained"'], "receiver": "ops"}]
    made_of = made(receivers=[{"name": "ops"}], routes=routes, heartbeat_url="https://hook.example.com")
    route = yaml.safe_load(made_of.secrets["alertmanager.yml"])["route"]
    assert route["receiver"] == "ops"
    heartbeat, *others = route["routes"]
    assert heartbeat["receiver"] == "heartbeat"
    assert others == [*routes, {"matchers": ['severity="info"'], "receiver": "nobody"}]


def test_what_is_known_is_quiet() -> None:
    config = yaml.safe_load(made().secrets["alertmanager.yml"])
    assert [
        (rule["source_matchers"], rule["target_matchers"][-1], rule["equal"]) for rule in config["inhibit_rules"]
    ] == [
        (['alertname="InstanceDrained"'], 'scope="instance"', ["node", "instance_name"]),
        (['alertname="NodeInMaintenance"'], 'scope=~"instance|node"', ["node"]),
        (['alertname="NodeInMaintenance"'], 'alertname="GatewayDown"', ["node"]),
    ]


def test_a_heartbeat_is_told_of_before_all_that_only_informs() -> None:
    assert "rules/heartbeat.yml" not in made().files
    result = made(heartbeat_url="https://hook.example.com/secret-7", receivers=[{"name": "ops"}], repeat_hours=4)
    assert not result.problems and "heartbeat.yml" in result.rules
    config = yaml.safe_load(result.secrets["alertmanager.yml"])
    first = config["route"]["routes"][0]
    assert (first["receiver"], first["repeat_interval"]) == ("heartbeat", "270s")
    (hook,) = [one for one in config["receivers"] if one["name"] == "heartbeat"]
    assert hook["webhook_configs"] == [{"url": "https://hook.example.com/secret-7", "send_resolved": False}]
    # Who knows the address can keep a dead monitoring quiet.
    assert "secret-7" not in str(result.files)
    assert "secret-7" not in str(made(heartbeat_url="secret-7").problems)


def test_with_users_and_tls_it_asks_itself_like_everybody_else() -> None:
    result = made(
        bind_address="0.0.0.0", users={"op": "long-enough"}, tls_certificate="/etc/ssl/a.pem", tls_key="/etc/ssl/a.key"
    )
    assert not result.problems
    config = yaml.safe_load(result.secrets["prometheus.yml"])
    (own,) = [job for job in config["scrape_configs"] if job["job_name"] == "prometheus"]
    assert own["scheme"] == "https" and own["basic_auth"]["password_file"] == "password"
    assert yaml.safe_load(result.web) == {
        "tls_server_config": {"cert_file": "/etc/ssl/a.pem", "key_file": "/etc/ssl/a.key"}
    }
    assert result.url == "https://127.0.0.1:9090"
    assert "long-enough" not in str(result)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bind_address": "0.0.0.0"}, "monitoring_users: is empty"),
        ({"bind_address": "everywhere"}, "monitoring_bind_address: 'everywhere'"),
        ({"users": {"op": ""}}, "the password of op"),
        ({"users": {"op": "x" * 73}}, "the password of op"),
        ({"users": {"o:p": "long-enough"}}, "monitoring_users: 'o:p'"),
        ({"port": 9093}, "monitoring_alertmanager_port: 9093"),
        ({"retention_days": 0}, "monitoring_retention_days: 0"),
        ({"tls_certificate": "/a"}, "monitoring_tls_key"),
        ({"tls_certificate": "a", "tls_key": "b"}, "absolute path"),
        ({"external_url": "mon.example.com"}, "monitoring_external_url"),
        ({"receivers": [{"webhook_configs": []}]}, "monitoring_receivers: each must be an object with name"),
        ({"extra_rules": {"mine": ""}}, "monitoring_extra_rules: 'mine'"),
        ({"extra_rules": {"targets.yml": ""}}, "targets.yml: the role has a file of this name"),
    ],
)
def test_what_cannot_be_is_named(changed: dict[str, Any], said: str) -> None:
    result = made(**changed)
    assert said in "\n".join(result.problems)
    assert not result.files and not result.secrets


def test_everybody_may_come_in_where_that_is_said() -> None:
    assert not made(bind_address="0.0.0.0", anonymous=True).problems


def test_a_mistake_of_the_targets_is_one_of_the_plan() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    settings = {name.removeprefix("monitoring_"): value for name, value in defaults.items()}
    result = plan({**settings, "port": 0}, {"groups": {}, "problems": ["gpu2 has no address"]}, ROLE / "files", dump)
    assert len(result.problems) == 2


def test_a_diff_shows_no_secret() -> None:
    password = 'line one\nline "two"'
    text = made(
        receivers=[{"name": "ops", "webhook_configs": [{"url": "https://hooks.example.com/T0/secret"}]}],
        alertmanager_global={"smtp_from": "mon@example.com", "smtp_auth_password": password},
        remote_write=[{"url": "https://u:pw@far.example.com", "authorization": {"credentials": "bearer-of-news"}}],
    ).secrets
    assert yaml.safe_load(text["alertmanager.yml"])["global"]["smtp_auth_password"] == password
    shown = redacted(text["alertmanager.yml"] + text["prometheus.yml"])
    for secret in ("hooks.example.com", "line one", "two", "pw@far", "bearer-of-news"):
        assert secret not in shown
    assert "mon@example.com" in shown
    assert "bearer-of-news" not in without_secrets("found `bearer-of-news`", text["prometheus.yml"])


def test_secrets_of_any_form_are_hidden() -> None:
    """Keys with dashes and capitals, lists and objects below a secret's key, values of several lines."""
    config = {
        "remote_write": [
            {"url": "https://far.example.com/push", "headers": {"X-Scope": "tenant-9", "X-API-Key": "k-123456"}}
        ],
        "scrape_configs": [
            {"job_name": "more", "params": {"token": ["t-abcdef"]}, "scrape_interval": "15s"},
            {"job_name": "other", "http_headers": {"Api": {"secrets": ["h-one", "h-two"]}}, "metrics_path": "/m"},
        ],
        "receivers": [{"name": "mail", "smtp_auth_password": "x" * 90 + " y-second-line"}],
    }
    text = dump(config)
    for shown in (redacted(text), without_secrets(text, text)):
        for secret in ("far.example.com", "tenant-9", "k-123456", "t-abcdef", "h-one", "h-two", "xxx", "y-second"):
            assert secret not in shown
        for plain in ("job_name: more", "scrape_interval: 15s", "job_name: other", "metrics_path: /m", "name: mail"):
            assert plain in shown
    assert redacted("a: 1\n\nb: 2\n") == "a: 1\n\nb: 2\n"


def test_what_a_prometheus_elsewhere_gets() -> None:
    files = export(TARGETS, ROLE / "files", dump)
    config = yaml.safe_load(files["prometheus.yml"])
    assert [job["job_name"] for job in config["scrape_configs"]] == ["node", "engine", "gateway", "dcgm"]
    assert set(config["rule_files"]) <= set(files)
    assert "targets/node.json" in files and "targets/prometheus.json" not in files
    assert "inhibit_rules" in yaml.safe_load(files["alertmanager.yml"])
