# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings, replicas and files of a gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan, plan

KEYS = [{"name": "alice", "key": "a-key-of-20-letters-"}]


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of a gateway without TLS, with two paths. The other values are the role's defaults."""
    return {
        "bind_address": "0.0.0.0",
        "port": 8000,
        "metrics_port": 8404,
        "tls": False,
        "clients": [],
        "paths": ["/v1/chat/completions", "/v1/completions"],
        "anonymous": False,
        "body_mib": 8,
        "audio_mib": 25,
        "requests_per_minute": 0,
        "concurrent_requests": 128,
        "engine_requests": 256,
        "queue_requests": 256,
        "queue_seconds": 180,
        "generation_seconds": 1800,
        "hold_seconds": 120,
        "slow_start_seconds": 10,
        "retry_sent": False,
        "refuse_deaths": 0,
        "refuse_seconds": 600,
        "affinity": "none",
        "agent_port": 5004,
        "max_connections": 4096,
        "name": "gateway1",
    }


@pytest.fixture
def replicas() -> list[Replica]:
    """Two replica sets that serve one model, one of them on two nodes, and a third set."""
    return [
        Replica("gpu1", "192.0.2.11", "chat", "large", 5005, "engine-secret"),
        Replica("gpu2", "192.0.2.12", "chat", "large", 5005, "engine-secret"),
        Replica("gpu2", "192.0.2.12", "batch", "large", 5006, "engine-secret"),
        Replica("gpu3", "2001:db8::3", "code", "Org/Coder", 5005),
    ]


@pytest.fixture
def made() -> Callable[..., Plan]:
    """Makes all files of a gateway from these settings and replicas, with one key."""

    def make(settings: dict[str, Any], replicas: list[Replica], **changes: Any) -> Plan:
        found = plan({**settings, **changes}, replicas, KEYS)
        assert not found.problems
        return found

    return make
