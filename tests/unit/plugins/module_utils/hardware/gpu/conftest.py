# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples of a synthetic machine: outputs of tools of various versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture
def sample() -> Callable[[str], str]:
    """The text of a sample."""
    return lambda name: (DATA / name).read_text()
