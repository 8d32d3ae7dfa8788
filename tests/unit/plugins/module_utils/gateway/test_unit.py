# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drop-in of HAProxy's unit."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.unit import drop_in


def test_states_are_saved_before_a_reload_and_a_stop() -> None:
    lines = drop_in("4G").splitlines()
    assert "MemoryMax=4G" in lines
    reload = [line for line in lines if line.startswith("ExecReload=")]
    assert (
        reload[0] == "ExecReload=" and "show servers state" in reload[2] and reload[4].endswith("kill -USR2 $MAINPID")
    )
    assert "states.awk" in reload[3]
    assert any(line.startswith("ExecStartPre=-") and "states.awk" in line for line in lines)
    assert any(line.startswith("ExecStop=-") and "show servers state" in line for line in lines)
