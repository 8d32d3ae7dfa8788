# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine before and after the one reboot of this scenario's tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

PROJECT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
sys.path[:0] = [str(PROJECT / "molecule/shared"), str(PROJECT / "tests/tools")]

from node import changes
from virtual import Machine


@pytest.fixture(scope="session")
def machine() -> Machine:
    """The machine. Without the fixture `rebooted`, tests see it before its reboot."""
    return Machine()


@pytest.fixture(scope="session")
def rebooted(machine: Machine, pytestconfig: pytest.Config) -> Machine:
    """The machine after a reboot for its new command line. Tests with this fixture run last.

    Outside CI, maintenance.yml reboots the machine. This playbook takes minutes on an emulated processor, so CI reboots
    the machine directly, without roles/maintenance/tasks/reboot.yml.
    """
    boot = machine.run("cat /proc/sys/kernel/random/boot_id")
    if pytestconfig.getoption("markexpr") == "not full":
        machine.reboot()
    else:
        output = machine.maintenance(reboot_allowed=True)
        assert changes(output), output
    assert machine.run("cat /proc/sys/kernel/random/boot_id") != boot
    return machine


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Move tests that need the reboot behind all other tests of all files."""
    items.sort(key=lambda item: "rebooted" in item.fixturenames)
