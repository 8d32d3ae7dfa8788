# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of members: each difference, with the words of the operator's report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine import adapters
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import compare, digest
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.network import Network

from .test_members import gang

KEY = "0123456789abcdef"


def report(
    rank: int, nodes: int = 2, devices: tuple[str, ...] = ("H100",) * 8, key: str = KEY, **changes: Any
) -> dict[str, Any]:
    shared = digest.parts(gang(rank, nodes), "i@sha256:0", "llama", "abc", 5010, [], {"A": "1"}, adapters.get())
    network = changes.pop("network", Network("bond0", 9000, 25.0))
    return compare.report(gang(rank, nodes), {**shared, **changes}, devices, network, key)


@given(order=st.permutations(range(4)))
def test_equal_members_have_no_differences_whatever_the_order_of_reports(order: list[int]) -> None:
    reports = [report(rank, nodes=4) for rank in order]
    assert [compare.differences(reports, f"gpu-{rank}") for rank in order] == [[]] * 4


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"image": "i@sha256:1"}, "image of gpu-1 is i@sha256:1, and of gpu-0 i@sha256:0"),
        ({"revision": "abd"}, "revision of gpu-1 is abd, and of gpu-0 abc"),
        ({"arguments": ["--x"]}, "arguments of gpu-1 is --x, and of gpu-0 none"),
        ({"executor": "ray"}, "executor of gpu-1 is ray, and of gpu-0 none"),
        ({"environment": {"A": "2", "B": "1"}}, "environment variables of gpu-1 and gpu-0 differ: A, B"),
        ({"devices": ("A100",) * 8}, "gpu-1 has 8 x A100, and gpu-0 8 x H100"),
        ({"devices": ()}, "gpu-1 has no GPU, and gpu-0 8 x H100"),
        ({"network": Network("eth1", 1500)}, "eth1 of gpu-1 has MTU 1500, and bond0 of gpu-0 9000"),
        ({"network": Network("eth1", None, None, ("mlx5_0",))}, "gpu-1 has an active RDMA port, and gpu-0 has none"),
    ],
)
def test_each_difference_is_reported_on_the_leader_alone(changes: dict[str, Any], text: str) -> None:
    reports = [report(1, **changes), report(0)]
    assert compare.differences(reports, "gpu-0") == [f"instance big: {text}; make both nodes the same"]
    assert compare.differences(reports, "gpu-1") == []


def test_two_gangs_with_one_name_are_not_compared() -> None:
    assert compare.differences([report(0), report(0, nodes=3, devices=())], "gpu-0") == []


def test_a_report_of_one_member_has_no_differences() -> None:
    assert compare.differences([report(1)], "gpu-1") == compare.differences([], "gpu-1") == []


def test_without_a_report_of_the_leader_the_member_of_the_lowest_rank_gets_the_differences() -> None:
    reports = [report(2, 3, devices=()), report(1, 3)]
    assert len(compare.differences(reports, "gpu-1")) == 1 and compare.differences(reports, "gpu-2") == []


def test_values_of_variables_cannot_be_guessed_without_the_key() -> None:
    plain = digest.parts(gang(0), "i@sha256:0", "llama", "abc", 5010, [], {"A": "1"}, adapters.get())["environment"]
    sealed = [report(0, key=key)["shared"]["environment"] for key in (KEY, "another key of 16", "")]
    assert len({*map(str, sealed), str(plain)}) == 4
    assert sealed[2] == {"A": ""}, "without a key, no value is compared"
