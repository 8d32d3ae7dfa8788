# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings, targets and files of a monitoring host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.plan import Plan, plan

ROLE = Path(__file__).parents[5] / "roles/monitoring"
TARGETS: dict[str, Any] = {
    "groups": {"node": [{"targets": ["192.0.2.11:9100"], "labels": {"node": "gpu1"}}]},
    "problems": [],
}


@pytest.fixture
def role() -> Path:
    """The role's directory."""
    return ROLE


@pytest.fixture
def targets() -> dict[str, Any]:
    """The targets of one node."""
    return TARGETS


@pytest.fixture
def settings() -> dict[str, Any]:
    """The role's defaults, without the prefix of its variables."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    return {name.removeprefix("monitoring_"): value for name, value in defaults.items()}


@pytest.fixture
def made(settings: dict[str, Any]) -> Callable[..., Plan]:
    """A function that makes all files of a monitoring host from the role's defaults, with some of them changed."""
    return lambda **changed: plan({**settings, **changed}, TARGETS, ROLE / "files", dump)
