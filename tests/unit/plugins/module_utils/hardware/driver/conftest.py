# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and certificates for the tests of the driver."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.driver.pairs import (
    SERIAL,
    Pair,
    make_pair,
)


@pytest.fixture(scope="session")
def pair() -> Pair:
    return make_pair(SERIAL)


@pytest.fixture(scope="session")
def other_pair() -> Pair:
    return make_pair(7)
