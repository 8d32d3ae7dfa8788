# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests: the gang, and the table of times at the end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from gang import TIMES, Gang
from node import Node


@pytest.fixture(scope="session")
def gang() -> Gang:
    return Gang(Node("deb12"), Node("deb13"))


@pytest.fixture
def serving(gang: Gang) -> Gang:
    """The gang, once it serves, with a full budget."""
    gang.wait_serving()
    gang.reset_counts()
    return gang


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each fault took."""
    if TIMES:
        terminalreporter.section("gangs")
        for line in TIMES:
            terminalreporter.write_line(line)
