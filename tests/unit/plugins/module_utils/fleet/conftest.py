# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of nodes."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)

BACKUP = {
    "since": "2026-03-01T12:00:00Z",
    "interval": 86400,
    "succeeded": "2026-05-01T03:00:00Z",
    "ok": True,
    "error": "",
}


def instance(name: str = "main", **changes: Any) -> dict[str, Any]:
    reported = {
        "name": name,
        "state": "serving",
        "serving": True,
        "desired": True,
        "pending": False,
        "since": "2026-04-29T12:00:00Z",
        "model": "tiny-a",
        "revision": "ab12cd34ef56",
        "image": "registry.example.org/vllm@sha256:" + "ab" * 32,
        "release": {"desired": 3, "wanted": 3, "active": 3, "current": 3},
        "gpus": ["0", "1"],
        "probe": {"verdict": "healthy", "since": "2026-04-29T12:00:00Z", "stale": False},
        "drain": None,
        "gateways": [],
        "problems": [],
    }
    return {**reported, **changes}


def node(*instances: dict[str, Any], **changes: Any) -> dict[str, Any]:
    reported = {
        "schema": 1,
        "time": "2026-05-01T12:00:00Z",
        "system": {"debian": "12.9", "kernel": "6.1.0-30-amd64", "reboot_required": False},
        "instances": list(instances),
        "gpus": {
            "present": 4,
            "reported": 4,
            "models": ["NVIDIA H200"],
            "memory_total_mib": 4 * 143771,
            "memory_used_mib": 200000,
            "hottest_c": 61,
            "power_w": 1400,
            "driver": "580.95.05",
            "error": "",
        },
        "doctor": {"verdict": "ok", "problems": []},
        "rails_waiting": [],
        "lock": None,
        "updated": "2026-04-28T12:00:00Z",
        "backup": BACKUP,
        "errors": {},
    }
    return {**copy.deepcopy(reported), **changes}


DRAIN = {"owner": "ada@ops", "reason": "new fan", "since": "2026-05-01T10:00:00Z", "until": None}

FLEET = {
    "gpu1": node(instance(), instance("side", gpus=["2"], drain=DRAIN)),
    "gpu2": node(
        instance(
            pending=True,
            release={"desired": 4, "wanted": 4, "active": 3, "current": 3},
            probe={"verdict": "hung", "since": "2026-05-01T11:59:20Z", "stale": False},
            model="tiny-b",
        ),
        system={"debian": "13.1", "kernel": "6.12.0", "reboot_required": True},
        doctor={"verdict": "fail", "problems": ["fail: gpu-count: 3 of 4"]},
        backup=None,
        updated=None,
        rails_waiting=["rail 0 (rocep65s0f0/1): mtu: 1500 -> 9000"],
        lock={
            "run_id": "1",
            "user": "bob",
            "host": "ops",
            "playbook": "baremetal.inference.update_model",
            "since": "2026-05-01T11:00:00Z",
            "until": "",
            "stale": True,
        },
    ),
    "gpu3": {"unreachable": True, "msg": "Failed to connect to the host via ssh:\n no route"},
    "gpu4": {"failed": True, "msg": "sudo: a password is required"},
}
