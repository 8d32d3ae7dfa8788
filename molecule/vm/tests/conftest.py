# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine, before and after the one reboot that all tests of this scenario share."""

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
    """The machine; in tests that do not ask for `rebooted` it has not been booted since it was converged."""
    return Machine()


@pytest.fixture(scope="session")
def rebooted(machine: Machine) -> Machine:
    """The machine after the reboot, for its new command line, by the maintenance. Tests that ask for it run last."""
    boot = machine.run("cat /proc/sys/kernel/random/boot_id")
    output = machine.maintenance(reboot_allowed=True)
    assert changes(output), output
    assert machine.run("cat /proc/sys/kernel/random/boot_id") != boot
    return machine


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Those that need the reboot go behind all others, in whatever file they stand."""
    items.sort(key=lambda item: "rebooted" in item.fixturenames)
