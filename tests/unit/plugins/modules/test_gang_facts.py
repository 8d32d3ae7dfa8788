# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gang_facts: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import gang_facts

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(gang_facts, address="192.0.2.1")
    assert "node_call" not in given and (given["address"], given["rails"]) == ("192.0.2.1", {})
