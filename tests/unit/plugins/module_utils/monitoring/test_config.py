# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Prometheus and Alertmanager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan


def test_without_receivers_no_alert_is_sent(made: Callable[..., Plan]) -> None:
    config = yaml.safe_load(made().secrets["alertmanager.yml"])
    assert config["route"]["receiver"] == "nobody"
    assert config["receivers"] == [{"name": "nobody"}]


def test_an_alert_of_severity_info_is_sent_only_by_a_route_of_the_site(made: Callable[..., Plan]) -> None:
    routes = [{"matchers": ['alertname="InstanceDrained"'], "receiver": "ops"}]
    made_of = made(receivers=[{"name": "ops"}], routes=routes, heartbeat_url="https://hook.example.com")
    route = yaml.safe_load(made_of.secrets["alertmanager.yml"])["route"]
    assert route["receiver"] == "ops"
    heartbeat, *others = route["routes"]
    assert heartbeat["receiver"] == "heartbeat"
    assert others == [*routes, {"matchers": ['severity="info"'], "receiver": "nobody"}]


def test_a_drain_or_maintenance_inhibits_alerts_about_instance_node_or_gateway(made: Callable[..., Plan]) -> None:
    config = yaml.safe_load(made().secrets["alertmanager.yml"])
    assert [
        (rule["source_matchers"], rule["target_matchers"][-1], rule["equal"]) for rule in config["inhibit_rules"]
    ] == [
        (['alertname="InstanceDrained"'], 'scope="instance"', ["node", "instance_name"]),
        (['alertname="NodeInMaintenance"'], 'scope=~"instance|node"', ["node"]),
        (['alertname="NodeInMaintenance"'], 'alertname="GatewayDown"', ["node"]),
    ]


def test_the_heartbeats_route_comes_first(made: Callable[..., Plan]) -> None:
    assert "rules/heartbeat.yml" not in made().files
    result = made(heartbeat_url="https://hook.example.com/secret-7", receivers=[{"name": "ops"}], repeat_hours=4)
    assert not result.problems and "heartbeat.yml" in result.rules
    config = yaml.safe_load(result.secrets["alertmanager.yml"])
    first = config["route"]["routes"][0]
    assert (first["receiver"], first["repeat_interval"]) == ("heartbeat", "270s")
    (hook,) = [receiver for receiver in config["receivers"] if receiver["name"] == "heartbeat"]
    assert hook["webhook_configs"] == [{"url": "https://hook.example.com/secret-7", "send_resolved": False}]
    # With this address, anybody could hide that the monitoring is dead.
    assert "secret-7" not in str(result.files)
    assert "secret-7" not in str(made(heartbeat_url="secret-7").problems)


def test_with_users_and_tls_prometheus_scrapes_itself_by_https_with_a_password(made: Callable[..., Plan]) -> None:
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


@pytest.mark.parametrize(("seconds", "interval"), [(5, "10s"), (9, "10s"), (10, None), (15, None)])
def test_engines_are_scraped_at_most_every_10_seconds(
    made: Callable[..., Plan], seconds: int, interval: str | None
) -> None:
    config = yaml.safe_load(made(scrape_seconds=seconds).secrets["prometheus.yml"])
    found = {job["job_name"]: job.get("scrape_interval") for job in config["scrape_configs"]}
    assert found.pop("engine") == interval and set(found.values()) == {None}
