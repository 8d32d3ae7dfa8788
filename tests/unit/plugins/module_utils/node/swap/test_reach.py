# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A swap to a release that gateways would not reach has problems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import Endpoint
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.reach import problems

RUNS = Endpoint("192.0.2.11", 5005, ("01d",))


def found(comes: Endpoint | None, *addresses: str, key_mark: str | None = "01d", runs: Endpoint | None = RUNS) -> str:
    view = SetView("gw1", True, servers={"node1": Server(True, "UP", 100, 0, 0, addresses)}, key_mark=key_mark)
    return "; ".join(problems(runs, comes, [view, SetView("gw2", known=False)], "node1"))


@pytest.mark.parametrize(
    ("comes", "addresses"),
    [
        # Nothing changes for gateways, so their addresses do not matter: older gateways do not show addresses.
        (RUNS, ()),
        (None, ()),
        (replace(RUNS, port=5006), ("192.0.2.11:5005", "192.0.2.11:5006")),
        (replace(RUNS, address="0.0.0.0"), ("127.0.0.1:5005",)),
        (replace(RUNS, address="2001:db8::1"), ("[2001:db8::1]:5005",)),
        (replace(RUNS, address="2001:db8::1"), ("2001:db8::1:5005",)),
        (replace(RUNS, marks=("2e3", "01d")), ()),
        (replace(RUNS, marks=()), ()),
    ],
)
def test_a_release_that_gateways_reach_has_no_problem(comes: Endpoint | None, addresses: tuple[str, ...]) -> None:
    assert found(comes, *addresses) == ""


def test_a_release_that_gateways_do_not_reach_has_problems() -> None:
    for comes in (replace(RUNS, port=5006), replace(RUNS, address="192.0.2.99")):
        for known in ((), ("192.0.2.11:5005",), ("<unknown>:5006",), ("192.0.2.12:5006",)):
            assert found(comes, *known).startswith(
                f"gw1 has no server for {comes.address} port {comes.port}: run baremetal."
            )
    keyed = replace(RUNS, marks=("2e3",))
    for sent in ("01d", "", None):
        assert found(keyed, key_mark=sent).startswith("gw1 sends a key that the next release does not accept")
    assert found(keyed, key_mark="2e3") == ""
    both = found(replace(keyed, port=5006))
    assert "has no server" in both and "sends a key" in both


def test_a_first_release_has_no_problem() -> None:
    assert found(replace(RUNS, port=5006), runs=None) == ""
