# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTUs that `ibv_devinfo` prints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.verbs import Mtu, mtus

TEXT = """hca_id:\tmlx4_3
\tfw_ver:\t\t\t2.42.5000
\tphys_port_cnt:\t\t2
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t2048 (4)
\t\tport:\t2
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\tinvalid MTU (0)

hca_id:\xa0rxe7
\xa0\xa0Device ports:
\xa0\xa0\xa0\xa0port:\xa01
\xa0\xa0\xa0\xa0\xa0active_mtu:\xa01024 (3)
"""


def test_the_mtus_of_all_ports_are_read() -> None:
    assert mtus(TEXT) == {("mlx4_3", 1): Mtu(2048, 4096), ("mlx4_3", 2): Mtu(None, 4096), ("rxe7", 1): Mtu(1024, None)}


def test_a_port_belongs_to_the_device_above() -> None:
    assert mtus("port: 1\nactive_mtu: 256 (1)\nhca_id: a0\nactive_mtu: 512 (2)\n") == {}


@given(st.integers(0, len(TEXT)), st.text(max_size=5), st.integers(0, 9))
def test_mangled_output_is_no_exception(at: int, noise: str, lost: int) -> None:
    mtus(TEXT[:at])
    mtus(TEXT[:at] + noise + TEXT[at + lost :])


@pytest.mark.recordings("ibv_devinfo")
def test_recorded_output_is_read(recording: Any) -> None:
    assert mtus(recording.text()) == {
        (device["name"], port["port"]): Mtu(port["active_mtu"], port["max_mtu"])
        for device in recording.expected["devices"]
        for port in device["ports"]
    }
