# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a monitoring host, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan


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
        ({"external_url": "http://[fd00::1/prometheus"}, "monitoring_external_url: 'http://[fd00::1/prometheus'"),
        ({"heartbeat_url": "https://[beat"}, "monitoring_heartbeat_url: must be a URL"),
        ({"external_url": "https:///prometheus"}, "monitoring_external_url: 'https:///prometheus': must be a URL"),
        ({"heartbeat_url": "https:beat.example.com"}, "monitoring_heartbeat_url: must be a URL"),
        ({"extra_rules": {"mine.yml": {"groups": []}}}, "monitoring_extra_rules: 'mine.yml': must have the text"),
        ({"receivers": [{"webhook_configs": []}]}, "monitoring_receivers: must be a list of objects with name"),
        (
            {"extra_rules": {"mine.yml": "# M\udcfcller"}},
            "monitoring_extra_rules: 'mine.yml': must have texts in UTF-8",
        ),
        ({"extra_rules": {"mine": ""}}, "monitoring_extra_rules: 'mine'"),
        ({"extra_rules": {"targets.yml": ""}}, "targets.yml is the name of a file of the role"),
    ],
)
def test_a_wrong_setting_of_a_monitoring_host_is_a_problem(
    changed: dict[str, Any], said: str, made: Callable[..., Plan]
) -> None:
    result = made(**changed)
    assert said in "\n".join(result.problems)
    assert not result.files and not result.secrets


def test_a_wrong_address_hides_no_mistake_of_a_user(made: Callable[..., Plan]) -> None:
    problems = "\n".join(made(bind_address="everywhere", users={"a:b": "long-enough-31"}).problems)
    assert "monitoring_bind_address: 'everywhere'" in problems and "monitoring_users: 'a:b'" in problems


def test_all_variables_with_placeholders_are_problems_and_no_placeholder_is_shown(made: Callable[..., Plan]) -> None:
    """The playbook baremetal.inference.monitoring has no other check of placeholders."""
    unset = "change-me-8812"
    result = made(
        users={"op": unset},
        receivers=[{"name": "hook", "webhook_configs": [{"url": f"https://hooks.example.com/{unset}"}]}],
        heartbeat_url=f"https://beat.example.com/{unset}",
        remote_write=[{"url": "https://store.example.com", "basic_auth": {"password": unset}}],
    )
    for place in (
        "users.op",
        "receivers[0].webhook_configs[0].url",
        "remote_write[0].basic_auth.password",
        "heartbeat_url",
    ):
        assert any(f"monitoring_{place}: is a placeholder" in line for line in result.problems), place
    assert len(result.problems) == 4 and "8812" not in str(result.problems)
    assert not result.secrets and "8812" not in result.web


def test_anonymous_users_are_allowed_if_declared(made: Callable[..., Plan]) -> None:
    assert not made(bind_address="0.0.0.0", anonymous=True).problems
