# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the recovery."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    RECOVERY_TEMPLATE,
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import recovery_units


def test_requests_of_the_agent_start_the_recovery() -> None:
    units = recovery_units.render()
    assert set(units) == {RECOVERY_TEMPLATE, RECOVERY_DISPATCH, RECOVERY_PATH}
    assert f"DirectoryNotEmpty={Paths().recovery_requests}\n" in units[RECOVERY_PATH]
    assert "ExecStart=/usr/local/bin/inferctl recover --dispatch\n" in units[RECOVERY_DISPATCH]
    assert "ExecStart=/usr/local/bin/inferctl recover %i --triggered\n" in units[RECOVERY_TEMPLATE]
    assert f"TimeoutStartSec={recovery_units.STEP_TIMEOUT}\n" in units[RECOVERY_TEMPLATE]


def test_the_recovery_outlives_engines_and_docker() -> None:
    for text in recovery_units.render().values():
        assert "docker.service" not in text and "PartOf=" not in text and "BindsTo=" not in text
