# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of congestion control, of the inbox driver and of DOCA-OFED."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.congestion import Congestion, read


def test_a_port_without_files_of_congestion_control_has_no_settings(machine: Any) -> None:
    assert read(machine.root, "0000:1a:00.0", "ens1") is None
    assert read(machine.root, None, None) is None


def test_the_settings_of_the_inbox_driver_are_in_debugfs(machine: Any) -> None:
    directory = "sys/kernel/debug/mlx5_ib/0000:1a:00.0/cc_params"
    machine.write(f"{directory}/np_cnp_dscp", "0x30")
    assert read(machine.root, "0000:1a:00.0", "ens1") == Congestion(48, None, None, f"/{directory}", "debugfs")


def test_the_settings_of_doca_ofed_are_in_the_directory_of_the_network_device(machine: Any) -> None:
    directory = "sys/class/net/ens1/ecn"
    for side, on in (("roce_np", (3, 5)), ("roce_rp", (3,))):
        for number in range(8):
            machine.write(f"{directory}/{side}/enable/{number}", str(int(number in on)))
    machine.write(f"{directory}/roce_np/cnp_dscp", "48")
    machine.write(f"{directory}/roce_np/cnp_802p_prio", "6")
    assert read(machine.root, "0000:1a:00.0", "ens1") == Congestion(48, 6, [3], f"/{directory}", "ofed")
