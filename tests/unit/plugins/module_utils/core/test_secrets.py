# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Weak secrets: placeholders, short or empty secrets, and secrets with two purposes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.secrets import (
    OTHERS,
    OWN,
    is_placeholder,
    placeholders,
    weak,
)

GOOD: dict[str, Any] = {
    "vllm_api_key": "a-long-key-1",
    "vllm_accepted_keys": ["a-long-key-0"],
    "gang_key": "a-long-key-2",
    "gateway_keys": [{"name": "portal", "key": "a-long-key-3-of-16"}, {"name": "batch", "sha256": "0" * 64}],
    "backup_password": "a-long-key-4",
    "monitoring_users": {"operator": "a-long-key-5"},
    "monitoring_receivers": [{"name": "change-management", "email_configs": [{"to": "a@b"}]}],
    "docker_registry_credentials": [{"registry": "r", "username": "u", "password": "short"}],
}


def test_good_secrets_are_not_weak() -> None:
    assert weak(GOOD) == [] and weak({}) == [] and weak({"vllm_api_key": "", "gang_key": ""}) == []
    # During an update to a new key, both variables have the new key.
    assert weak({**GOOD, "vllm_accepted_keys": ["a-long-key-1"]}) == []


@pytest.mark.parametrize(
    "text",
    ["change-me", "CHANGE", "CHANGEME", "change_me-now", "change me", "https://hooks.example.com/change-me", "<key>"],
)
def test_placeholders_are_found_in_every_variable_at_once(text: str) -> None:
    variables: dict[str, Any] = {name: [{"some": text}] for name in (*OWN, *OTHERS)}
    variables["gateway_keys"] = [{"name": "portal", "key": text}]
    lines = weak(variables)
    assert len(lines) == len(OWN) + len(OTHERS)
    assert all("is a placeholder" in line and text not in line for line in lines)
    assert any(line.startswith("gateway_keys[0] (portal): ") for line in lines)


def test_the_advice_depends_on_the_origin_of_the_secret() -> None:
    receivers = [{"name": "ops", "webhook_configs": [{"url": "https://hooks.example.com/change-me"}]}]
    ((place, message),) = placeholders("monitoring_receivers", receivers)
    assert place == "monitoring_receivers[0].webhook_configs[0].url" and "openssl" not in message
    ((place, message),) = placeholders("monitoring_users", {"operator": "change-me", "night": "a-long-key-5"})
    assert place == "monitoring_users.operator" and "`openssl rand -hex 32` makes one" in message
    assert placeholders("monitoring_heartbeat_url", "") == []
    ((_place, key),) = placeholders("backup_sftp_key", "change-me-to-a-private-key")
    ((_place, password),) = placeholders("nvidia_driver_mok_password", "change-me")
    assert "private key" in key and "password of your own" in password and "other service" not in key + password


def test_random_secrets_and_plain_words_are_no_placeholders() -> None:
    for text in (
        "f00dchange",
        "exchange-metrics",
        "changelog",
        "0" * 64,
        "Please change it soon.",
        "https://exchange-it.example",
    ):
        assert not is_placeholder(text), text


def test_short_and_empty_secrets_of_the_site_are_weak() -> None:
    lines = weak({**GOOD, "backup_password": "seven77", "monitoring_users": {"operator": ""}, "vllm_api_key": "  "})
    assert [line.partition(":")[0] for line in lines] == [
        "vllm_api_key",
        "backup_password",
        "monitoring_users.operator",
    ]
    assert "is empty" in lines[0] and "fewer than 8" in lines[1] and "seven77" not in str(lines)


def test_one_secret_for_two_purposes_or_two_clients_is_weak() -> None:
    same = GOOD["vllm_api_key"]
    twice = [{"name": "a", "key": "a-long-key-9-of-16"}, {"name": "b", "key": "a-long-key-9-of-16"}]
    lines = weak({**GOOD, "gang_key": same, "gateway_keys": twice})
    assert lines == [
        "gang_key: is the same secret as vllm_api_key: give each its own",
        "gateway_keys[1] (b): is the same secret as gateway_keys[0] (a): give each its own",
    ]
    # Two keys that are declared by one checksum are the same secret.
    key = {"name": "a", "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
    assert "same secret" in weak({"backup_password": "test" * 2, "gateway_keys": [key, {**key, "name": "b"}]})[0]


def test_the_examples_vault_is_refused() -> None:
    vault = yaml.safe_load((Path(__file__).parents[5] / "inventories/example/group_vars/all/vault.yml").read_text())
    assert vault and all(is_placeholder(value) for value in vault.values())
