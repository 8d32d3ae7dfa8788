# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a gateway, checked."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.settings import (
    NUMBERS,
    absent_settings,
    read_settings,
)


def test_the_roles_defaults_have_no_mistake(settings: dict[str, Any]) -> None:
    found, problems = read_settings({**settings, "clients": ["192.0.2.0/24", "2001:db8::1"]})
    assert problems == [] and found.port == 8000
    assert found.clients == ("192.0.2.0/24", "2001:db8::1")
    assert found.paths == ("/v1/chat/completions", "/v1/completions")
    assert read_settings({**settings, "paths": ["/classify", "/pooling", "/v2/rerank"]})[1] == []


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_number_has_its_limits(settings: dict[str, Any], name: str) -> None:
    least, most = NUMBERS[name]
    for value in (least - 1, most + 1, True, "1", None, 1.5):
        words = "\n".join(map(str, read_settings({**settings, name: value})[1]))
        assert f"gateway_{name}" in words and f"from {least} to {most}" in words


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"metrics_port": 8000}, "gateway_metrics_port", "is also gateway_port"),
        ({"bind_address": "gw1"}, "gateway_bind_address", "must be an address of the gateway"),
        ({"clients": ["192.0.2.1/24"]}, "gateway_clients", "bits after the prefix are 0"),
        ({"paths": ["/metrics"]}, "gateway_paths", "/metrics"),
        ({"paths": ["/v1/models"]}, "gateway_paths", "not /v1/models"),
        ({"paths": ["/sleep"]}, "gateway_paths", "or one of /classify, /pooling, "),
        ({"paths": [{"/classify": None}]}, "gateway_paths", "or one of /classify, /pooling, "),
        ({"paths": []}, "gateway_paths", "is empty, so no request would pass"),
        ({"affinity": "sticky"}, "gateway_affinity", "one of none, session, prefix"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(
    settings: dict[str, Any], changes: dict[str, Any], name: str, words: str
) -> None:
    (problem,) = read_settings({**settings, **changes})[1]
    assert name in str(problem) and words in str(problem)


def test_all_mistakes_are_found_at_once(settings: dict[str, Any]) -> None:
    wrong = {**settings, "port": 0, "bind_address": "gw1", "clients": ["x", "y"], "affinity": "sticky"}
    assert len(read_settings(wrong)[1]) == 5


def test_each_missing_setting_is_named(settings: dict[str, Any]) -> None:
    assert absent_settings(settings) == []
    lacking = {name: value for name, value in settings.items() if name not in ("agent_port", "tls")}
    assert [str(problem).split(":")[1].strip() for problem in absent_settings(lacking)] == [
        "gateway_tls",
        "gateway_agent_port",
    ]
