# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all unit tests."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# `make setup` links the checkout there, so that the collection's own name resolves.
sys.path.insert(0, str(Path(__file__).parents[2] / ".cache"))

# Wrong answers count, not how busy the machine is; and hypothesis' first text of all takes seconds, for its table.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
