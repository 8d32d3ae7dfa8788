# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders and addresses that leader and follower share."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import NONE, Order, same


def test_the_order_without_a_gang_starts_nothing() -> None:
    assert (Order().engine, Order().epoch, Order().planned) == (NONE, 0, False)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.10", False),
        ("fd00::1", "fd00:0:0::1", True),
        ("gpu-1", "gpu-1", True),
        ("gpu-1", "10.0.0.1", False),
    ],
)
def test_addresses_are_compared_by_their_value(one: str, other: str, expected: bool) -> None:
    assert same(one, other) is expected
