# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module rdma_settings: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import rdma_settings

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(rdma_settings, settings={"mtu": 9000})
    assert "node_call" not in given
    assert (given["settings"], given["address"], given["peers"], given["packages"]) == ({"mtu": 9000}, "", {}, [])
