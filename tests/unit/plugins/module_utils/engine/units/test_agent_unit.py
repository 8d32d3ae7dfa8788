# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit of the agent."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import agent_unit


def test_the_agent_outlives_engines_and_docker() -> None:
    lines = agent_unit.render("192.0.2.1", 5004).splitlines()
    assert "ExecStart=/usr/local/bin/inferctl agent --address 192.0.2.1 --port 5004" in lines
    assert {"Type=notify", "Restart=always", "StartLimitIntervalSec=0", "WatchdogSec=30"} <= set(lines)
    assert not [line for line in lines if "docker.service" in line or line.startswith("PartOf=")]


def test_an_address_cannot_add_to_the_command() -> None:
    line = next(line for line in agent_unit.render("a b%", 1).splitlines() if line.startswith("ExecStart="))
    assert line.endswith('agent --address "a b%%" --port 1')


def test_the_agent_writes_only_its_state_and_metrics() -> None:
    (writable,) = [line for line in agent_unit.render("::", 1).splitlines() if line.startswith("ReadWritePaths=")]
    assert writable.startswith("ReadWritePaths=/var/lib/inference -/")
