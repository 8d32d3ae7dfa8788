# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the kernel, before and after a reboot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from node import changed_tasks
from virtual import Machine

VALUES = {"kernel/panic": "30", "vm/swappiness": "10", "net/core/somaxconn": "4096"}


def has_its_values(machine: Machine) -> None:
    for key, value in VALUES.items():
        assert machine.run(f"cat /proc/sys/{key}") == value
    assert "[madvise]" in machine.run("cat /sys/kernel/mm/transparent_hugepage/enabled")
    assert machine.run("awk '/HugePages_Total/ {print $2}' /proc/meminfo") == "16"
    assert machine.run("systemctl show --value --property=RuntimeWatchdogUSec") == "1min"
    limits = machine.run("systemd-run --quiet --wait --pipe prlimit --output=SOFT --noheadings --nofile --memlock")
    assert set(limits.split()) == {"unlimited", "1048576"}


def test_the_kernel_has_the_declared_values(machine: Machine) -> None:
    has_its_values(machine)


def test_the_command_line_waits_for_a_reboot(machine: Machine) -> None:
    assert "iommu=pt" not in machine.run("cat /proc/cmdline")
    assert machine.run("cat /run/reboot-required.pkgs") == "inference-kernel-cmdline"


# These runs use only the kernel's part of the role, without the preflight, which would take long here.
KERNEL: dict[str, Any] = {"common_due": True}


def test_check_mode_foresees_a_new_value_and_leaves_the_old_one(machine: Machine, tmp_path: Path) -> None:
    new = {"vm.vfs_cache_pressure": 50}
    tags = ("--tags", "common_kernel", "--check", "--diff")
    changed, output = changed_tasks(machine, tmp_path, *tags, common_sysctl=new, **KERNEL)
    assert len(changed) == 1 and "+vm.vfs_cache_pressure = 50" in output
    assert machine.run("cat /proc/sys/vm/vfs_cache_pressure") == "100"


def test_a_value_that_the_kernel_does_not_take_is_an_error_that_names_it(machine: Machine) -> None:
    """The kernel accepts 0 to 2. After the refusal, the other settings are as before, too."""
    wrong = {"vm.overcommit_memory": 9, "vm.swappiness": 20}
    output = machine.site("--tags", "common_kernel", check=False, common_sysctl=wrong, **KERNEL)
    assert "vm.overcommit_memory: wanted '9', but the kernel has '0' (Invalid argument)" in " ".join(output.split())
    has_its_values(machine)
    assert "overcommit" not in machine.run("cat /etc/sysctl.d/60-inference.conf")


def test_all_settings_are_there_after_a_reboot(rebooted: Machine) -> None:
    has_its_values(rebooted)
    assert "iommu=pt" in rebooted.run("cat /proc/cmdline").split()
    rebooted.run("! ls /run/reboot-required")
    assert rebooted.run("systemctl is-system-running") == "running"
