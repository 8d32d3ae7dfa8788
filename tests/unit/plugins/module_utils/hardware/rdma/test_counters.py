# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of errors and congestion of a port; None for a counter that the hardware does not have."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.counters import counters


def test_counters_of_traffic_are_left_out(tmp_path: Path) -> None:
    for name, text in {
        "counters/symbol_error": "3\n",
        "counters/port_xmit_data": "77\n",
        "counters/VL15_dropped": "N/A (no PMA)\n",
        "hw_counters/out_of_sequence": "5\n",
        "hw_counters/rx_read_requests": "9\n",
        "hw_counters/lifespan": "10\n",
        "hw_counters/symbol_error": "none\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert counters(tmp_path) == {"VL15_dropped": None, "out_of_sequence": 5, "symbol_error": 3}


def test_a_port_without_directories_of_counters_has_no_counters(tmp_path: Path) -> None:
    assert counters(tmp_path) == {}
