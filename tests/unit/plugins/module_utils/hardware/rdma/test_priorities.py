# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of priorities: from a driver of the test, and from the kernel's own veth."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import priorities

COUNTERS = {
    "rx_packets": 5,
    "rx_prio3_bytes": 2**40,
    "tx_prio3_bytes": 7,
    "rx_prio3_pause": 8,
    "tx_prio0_pause": 9,
    "rx_prio3_discards": 1,
    "rx_prio30_bytes": 99,
    "rx_discards_phy": 4,
    "rx_out_of_buffer": 6,
}


def driver(counters: dict[str, int]) -> Any:
    """A driver with these counters, which answers as the kernel does."""

    def control(netdev: str, buffer: ctypes.Array[ctypes.c_char]) -> None:
        (command,) = struct.unpack_from("=I", buffer.raw)
        if netdev != "ens1":
            raise OSError(95, "Operation not supported")
        if command == priorities.SET_INFO:
            answer = struct.pack("=IIQI", command, 0, 1 << priorities.STATISTICS if counters else 0, len(counters))
        elif command == priorities.STRINGS:
            answer = buffer.raw[:12] + b"".join(name.encode().ljust(32, b"\0") for name in counters)
        else:
            answer = buffer.raw[:8] + struct.pack(f"={len(counters)}Q", *counters.values())
        ctypes.memmove(buffer, answer, len(answer))

    return control


def test_the_counters_of_a_driver_are_read() -> None:
    assert priorities.counters("ens1", driver(COUNTERS)) == COUNTERS
    assert priorities.counters("ens1", driver({})) == {}
    assert priorities.counters("eth0", driver(COUNTERS)) == {}


def test_bytes_pauses_and_discards_are_grouped_by_priority() -> None:
    assert priorities.priorities(COUNTERS) == {
        "bytes": {"received": {"3": 2**40}, "sent": {"3": 7}},
        "pauses": {"received": {"3": 8}, "sent": {"0": 9}},
        "discards": {"received": {"3": 1}},
    }
    assert priorities.discards(COUNTERS) == 10
    assert priorities.discards({}) is None and priorities.priorities({}) == {}


@pytest.mark.parametrize(
    ("name", "what", "direction"),
    [
        ("rx_bytes_pri5", "bytes", "received"),
        ("tx_bytes_pri5", "bytes", "sent"),
        ("pfc_pri5_tx_transitions", "pauses", "sent"),
        ("rx_priority_5_xoff.nic", "pauses", "received"),
    ],
)
def test_the_names_of_counters_of_other_drivers_are_known(name: str, what: str, direction: str) -> None:
    assert priorities.priorities({name: 3}) == {what: {direction: {"5": 3}}}


def test_the_kernel_answers_for_veth_and_loopback() -> None:
    """A veth has counters of its queues. The loopback device has none."""
    assert priorities.counters("lo") == {}
    assert priorities.counters("a-name-that-is-much-too-long") == {}
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can make network namespaces")
    script = (
        "import json, subprocess, runpy; subprocess.run('ip link add v0 type veth peer name v1'.split(), check=True); "
        f"print(json.dumps(runpy.run_path({priorities.__file__!r})['counters']('v0')))"
    )
    result = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    if result.returncode:
        pytest.skip("no veth here")
    assert "peer_ifindex" in json.loads(result.stdout)
