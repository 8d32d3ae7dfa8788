# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all unit tests."""

from __future__ import annotations

import sys
from pathlib import Path

# `make setup` links the checkout there, so that the collection's own name resolves.
sys.path.insert(0, str(Path(__file__).parents[2] / ".cache"))
