# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a gang, and the form in which a node keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import (
    Gang,
    Member,
    from_optional,
)


def gang(rank: int = 0, nodes: int = 2, digest: str = "") -> Gang:
    members = tuple(Member(f"gpu-{number}", number, f"10.0.0.{number + 1}") for number in range(nodes))
    return Gang("big", rank, members, 5110, 29510, digest)


def test_the_first_member_leads() -> None:
    leader, follower = gang(), gang(1, nodes=3)
    assert (leader.leads, follower.leads) == (True, False)
    assert leader.leader == leader.me == leader.members[0]
    assert follower.me.node == "gpu-1" and [one.node for one in follower.others] == ["gpu-0", "gpu-2"]
    assert [one.rank for one in follower.followers] == [1, 2] and follower.world == 3
    assert follower.member("gpu-2") == follower.members[2] and follower.member("gpu-9") is None


@given(nodes=st.integers(2, 8), data=st.data(), digest=st.text("0123456789abcdef", max_size=64))
def test_a_gang_is_read_as_it_was_written(nodes: int, data: st.DataObject, digest: str) -> None:
    one = gang(data.draw(st.integers(0, nodes - 1)), nodes, digest)
    text = json.loads(json.dumps(one.to_dict()))
    assert Gang.from_dict(text) == one == from_optional({**text, "of a later version": 1})


def test_an_instance_on_one_node_has_no_gang() -> None:
    assert from_optional(None) is None


@pytest.mark.parametrize(
    "change",
    [
        {"members": None},
        {"members": [{"node": "a"}]},
        {"members": [{"node": "a", "rank": 1, "address": "x"}]},
        {"rank": 2},
        {"members": []},
        {"gang_port": ...},
    ],
)
def test_a_damaged_gang_is_refused(change: dict[str, Any]) -> None:
    value = {key: each for key, each in {**gang().to_dict(), **change}.items() if each is not ...}
    with pytest.raises(ValueError, match="gang"):
        Gang.from_dict(value)
    with pytest.raises(ValueError, match="damaged"):
        Gang.from_dict("text")
