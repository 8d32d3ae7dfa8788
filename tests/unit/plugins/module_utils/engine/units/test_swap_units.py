# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of swaps."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    GATES_UNIT,
    SWAP_TEMPLATE,
    Paths,
    swap_unit,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import swap_units


def test_a_swap_that_dies_is_started_again_and_never_given_up() -> None:
    units = swap_units.render()
    assert set(units) == {SWAP_TEMPLATE, GATES_UNIT} and swap_unit("main") == "inference-swap@main.service"
    lines = units[SWAP_TEMPLATE].splitlines()
    assert {"Restart=on-failure", "StartLimitIntervalSec=0", f"RestartSec={swap_units.RESTART_SECONDS}"} <= set(lines)
    assert "ExecStart=/usr/local/bin/inferctl perform-swap %i" in lines


def test_a_swap_outlives_engines_and_docker() -> None:
    for text in swap_units.render().values():
        assert "Requires=" not in text and "PartOf=" not in text and "BindsTo=" not in text


def test_gates_close_before_the_first_engine_starts() -> None:
    lines = swap_units.render()[GATES_UNIT].splitlines()
    assert "ExecStart=/usr/local/bin/inferctl resume-swaps" in lines and "WantedBy=multi-user.target" in lines
    before, after = (next(line for line in lines if line.startswith(word)) for word in ("Before=", "After="))
    assert "docker.service" in before and "inference.target" in before
    # The firewall's rules are loaded before: a `flush ruleset` there would open the gates again.
    assert "nftables.service" in after and "local-fs.target" in after
    assert f"ConditionDirectoryNotEmpty={Paths().swap('main').parent}" in lines
    # A report is no swap: the directory is empty when no swap is under way.
    assert Paths().swap_report("main").parent != Paths().swap("main").parent
