# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations and messages without their secrets."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.redaction import redacted, without_secrets


def test_a_diff_shows_no_secret(made: Callable[..., Plan]) -> None:
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


def test_secrets_in_lists_objects_and_long_values_are_hidden() -> None:
    """The keys of secrets may have dashes and capitals."""
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
