# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's variables: mistakes and their remedies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import variables
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish


def refusals(**raw: Any) -> list[str]:
    found = Findings()
    variables.of(raw, found)
    return [str(problem) for problem in found.problems]


def test_the_defaults_have_no_mistakes() -> None:
    found = Findings()
    assert variables.of({}, found) == Wish() and not found.problems and not found.warnings
    assert Wish().tos == 106 and Wish(roce_tos=41).tos == 41


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"mtuu": 9000}, "did you mean 'mtu'?"),
        ({"mtu": 100}, "from 1280 to 65520"),
        ({"mtu": "9000"}, "must be an integer"),
        ({"mtu": True}, "must be an integer"),
        ({"dscp": 106}, "that is a traffic class; the DSCP is 26"),
        ({"dscp": 300}, "from 0 to 63"),
        ({"cnp_dscp": -1}, "from 0 to 63"),
        ({"cnp_dscp": 26}, "equals rdma_dscp"),
        ({"cnp_priority": 3}, "equals rdma_lossless_priority"),
        ({"lossless_priority": 0}, "must not be lossless; set 1 to 7"),
        ({"lossless_priority": 8}, "from 0 to 7, or null"),
        ({"trust": "pcp"}, "set dscp"),
        ({"trust": "cos"}, "allowed are dscp, pcp, unmanaged"),
        ({"ets": {3: 50, 0: 40}}, "sum up to 90"),
        ({"ets": {0: 100}}, "no share for the lossless priority 3"),
        ({"ets": {0: 100, 3: 0}}, "no share for the lossless priority 3"),
        ({"ets": {0: 50, 3: 51}}, "sum up to 101"),
        ({"ets": {0: 50, 3: 49}}, "sum up to 99"),
        ({"ets": {0: -1, 3: 101}}, "shares 0 to 100 percent"),
        ({"ets": {8: 50, 3: 50}}, "priorities are 0 to 7"),
        ({"ets": {9: 100}}, "priorities are 0 to 7"),
        ({"ets": [50, 50]}, "must map priorities"),
        ({"ecn": "yes"}, "allowed are unmanaged, true, false"),
        ({"roce_tos": 256}, "from 0 to 255"),
        ({"max_read_request": 8192}, "allowed are null, 128"),
        ({"max_read_request": True}, "allowed are null, 128"),
        ({"acs": "on"}, "allowed are off, unmanaged"),
        ({"gpudirect": "gdrcopy"}, "allowed are auto, dma_buf, peermem, none"),
        ({"link_layer": "roce"}, "allowed are auto, ethernet, infiniband"),
        ({"network_manager": "netplan"}, "allowed are auto, ifupdown"),
        ({"rails": []}, "or a list of entries with one of the keys pci, netdev, device"),
        ({"rails": [{"mac": "x"}]}, "one of the keys"),
        ({"rails": [{"pci": 7}]}, "a text in quotes"),
        ({"rails": "all"}, "allowed are auto"),
        ({"addresses": "10.1.0.1/16"}, "a list of texts"),
        ({"addresses": ["10.1.0.1/16"], "subnets": ["10.1.0.0/16"], "host_index": 1}, "not both"),
        ({"subnets": ["10.1.0.0/16"]}, "set it in host_vars"),
        ({"host_index": 0}, "from 1 to"),
        ({"partition_keys": ["8001x"]}, "not a partition key"),
        ({"partition_keys": ["0x0"]}, "not a partition key"),
        ({"partition_keys": ["0x10001"]}, "not a partition key from 0x0001 to 0xffff"),
        ({"partition_keys": ["0x8000"]}, "it only has the bit of full members"),
        ({"partition_keys": [32769]}, "a list of texts"),
        ({"ipoib_mode": "fast"}, "allowed are null, datagram, connected"),
    ],
)
def test_a_wrong_variable_is_a_problem_with_a_remedy(raw: dict[str, Any], words: str) -> None:
    (refusal,) = refusals(**raw)
    assert words in refusal and f"rdma_{next(iter(raw))}" in refusal


def test_the_advised_priority_of_congestion_packets_is_not_lossless() -> None:
    for lossless, advised in ((3, "set 6"), (6, "set 7")):
        (refusal,) = refusals(lossless_priority=lossless, cnp_priority=lossless)
        assert refusal.endswith(advised)
    assert refusals(lossless_priority=6, cnp_priority=7) == []


def test_all_problems_of_variables_are_reported_at_once() -> None:
    assert len(refusals(mtu=1, dscp=106, trust="x", ets={0: 1, 3: 1}, rails=[], nonsense=1)) == 6


def test_dscp_0_of_all_other_traffic_is_a_warning_unless_trust_is_unmanaged() -> None:
    for raw, warnings in (({"dscp": 0}, 1), ({"dscp": 0, "trust": "unmanaged"}, 0), ({"dscp": 63}, 0)):
        found = Findings()
        variables.of(raw, found)
        assert len(found.warnings) == warnings and not found.problems


def test_without_a_lossless_priority_trust_and_priorities_are_not_checked() -> None:
    assert refusals(lossless_priority=None, dscp=48, cnp_priority=3, trust="pcp") == []


@pytest.mark.parametrize(("key", "value"), [("ets", {0: 100}), ("ecn", True), ("ecn", False)])
def test_settings_that_need_a_lossless_priority_are_refused_without_one(key: str, value: Any) -> None:
    (refusal,) = refusals(lossless_priority=None, **{key: value})
    assert f"rdma_{key}: {value!r}: has no effect while rdma_lossless_priority is null" in refusal
    assert f"set a priority, or remove rdma_{key}" in refusal


def test_priorities_may_be_texts_as_in_json() -> None:
    assert variables.of({"ets": {"3": 50, "0": 50}}, Findings()).ets == {3: 50, 0: 50}


def test_variables_that_a_link_layer_does_not_use_are_without_meaning() -> None:
    assert variables.without_meaning(Wish(), "infiniband") == variables.without_meaning(Wish(), "ethernet") == []
    assert variables.without_meaning(Wish(dscp=10, ecn=True), "infiniband") == ["dscp", "ecn"]
    assert variables.without_meaning(Wish(lossless_priority=None), "infiniband") == []
    assert variables.without_meaning(Wish(ipoib_mode="datagram"), "ethernet") == ["ipoib_mode"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70000) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(variables.Wish.__dataclass_fields__)) | st.text(max_size=4), ANYTHING))
def test_any_input_is_refused_with_its_name_or_taken(raw: dict[str, Any]) -> None:
    found = Findings()
    wish = variables.of(raw, found)
    for key, value in raw.items():
        named = any(problem.key in (f"rdma_{key}", "rdma_subnets", "rdma_host_index") for problem in found.problems)
        taken = key == "ets" or getattr(wish, key, object()) == value
        assert named or taken
    assert all(problem.message for problem in found.problems)
