# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of `rdma` in the forms of its versions, and damaged."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import iproute

IB = iproute.Link("mlx5_0", 1, "ACTIVE", "LINK_UP", None, 21, 3)
ROCE = iproute.Link("mlx5_1", 2, "DOWN", "DISABLED", "ens2f1", None, None)

NEW = """[{"ifindex":0,"ifname":"mlx5_0","port":1,"subnet_prefix":"fe80:0000:0000:0000","lid":21,"sm_lid":3,"lmc":0,
"state":"ACTIVE","physical_state":"LINK_UP"}
,{"ifindex":4,"ifname":"mlx5_1","port":2,"state":"DOWN","physical_state":"DISABLED","netdev":"ens2f1","netdev_index":7}
]
"""
OLD = """[{"ifindex":0,"port":1,"ifname":"mlx5_0/1","subnet_prefix":"fe80:0000:0000:0000","lid":21,"sm_lid":3,"lmc":0,
"state":"ACTIVE","physical_state":"LINK_UP","caps":["AUTO_MIG"]},{"ifindex":4,"port":2,"ifname":"mlx5_1/2",
"state":"DOWN","physical_state":"DISABLED","netdev":"ens2f1"}]"""
NEW_TEXT = """link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 21 sm_lid 3 lmc 0 state ACTIVE physical_state LINK_UP
    caps: <AUTO_MIG, CM>
link mlx5_1/2 state DOWN physical_state DISABLED netdev ens2f1\x20
"""
OLD_TEXT = """0/1: mlx5_0/1: subnet_prefix fe80:0000:0000:0000 lid 21 sm_lid 3 lmc 0
\tstate ACTIVE physical_state LINK_UP
4/2: mlx5_1/2: state DOWN physical_state DISABLED netdev ens2f1
"""


@pytest.mark.parametrize("text", [NEW, OLD, NEW_TEXT, OLD_TEXT], ids=["new", "old", "new-text", "old-text"])
def test_the_output_of_each_version_has_the_same_ports(text: str) -> None:
    assert iproute.links(text) == [IB, ROCE]


def test_devices_are_read_from_json_and_from_text() -> None:
    text = '[{"ifindex":0,"ifname":"rxe1","node_type":"ca","protocol":"roce","node_guid":"0642:1aff:fe00:0b07"}]'
    assert iproute.devices(text) == [iproute.Device("rxe1", "ca", None, "0642:1aff:fe00:0b07", "roce")]
    text = "3: mlx5_9: node_type ca fw 28.40.1 node_guid 5e25:7303:00d1:2a40 sys_image_guid 5e25:7303:00d1:2a41\n"
    assert iproute.devices(text) == [iproute.Device("mlx5_9", "ca", "28.40.1", "5e25:7303:00d1:2a40", None)]


@pytest.mark.parametrize("text", ["[]", "[ ]\n", "", "\n"])
def test_empty_output_has_no_ports_and_no_devices(text: str) -> None:
    assert iproute.links(text) == iproute.devices(text) == []


@pytest.mark.parametrize("text", ["{}", "7", "[{", "[" * 100_000, "Usage: rdma", '[{"ifname": mlx5_0}]', "9" * 5000])
def test_output_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        iproute.links(text)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"ifname": "mlx5_0"},
        {"ifname": "", "port": 1},
        {"ifname": "a/b"},
        {"ifname": ["x"], "port": [1]},
        [],
    ],
)
def test_entries_that_name_no_port_are_left_out(entry: Any) -> None:
    assert iproute.links(json.dumps([entry])) == []


def test_a_number_as_the_name_of_a_device_is_read_as_text() -> None:
    assert [link.device for link in iproute.links('[{"ifname": 7, "port": 1, "state": null}]')] == ["7"]


def test_values_of_another_kind_are_unknown() -> None:
    entry = {"ifname": "a0", "port": 1, "lid": True, "sm_lid": 1.5, "state": ["x"], "netdev": "", "physical_state": 5}
    assert iproute.links(json.dumps([entry])) == [iproute.Link("a0", 1, None, None, None, None, None)]


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("LINK_UP", "LinkUp"),
        ("ARMED", "PortConfigurationTraining"),
        ("OPA_OFFLINE", "OPA_OFFLINE"),
        ("NOP", None),
        ("UNKNOWN", None),
        (None, None),
    ],
)
def test_physical_states_are_in_the_words_of_sysfs(word: str | None, meaning: str | None) -> None:
    assert iproute.physical_state(word) == meaning


@given(st.sampled_from([NEW, OLD, NEW_TEXT, OLD_TEXT]), st.integers(0, 700), st.text(max_size=5), st.integers(0, 9))
def test_mangled_output_is_an_answer_or_a_value_error(text: str, at: int, noise: str, lost: int) -> None:
    for mangled in (text[:at], text[:at] + noise + text[at + lost :]):
        with suppress(ValueError):
            iproute.links(mangled)
            iproute.devices(mangled)


KEYS = st.sampled_from(["ifname", "port", "state", "physical_state", "netdev", "lid", "fw", "node_guid"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.text(), inner),
)


@given(JSON)
def test_any_json_is_an_answer_or_a_value_error(data: Any) -> None:
    for text in (json.dumps(data), json.dumps([data])):
        with suppress(ValueError):
            iproute.links(text)
            iproute.devices(text)


@pytest.mark.recordings("rdma_json")
def test_recorded_output_is_read(recording: Any) -> None:
    expected = recording.expected
    if "stderr" in recording.name:
        pytest.skip("the text is from standard error")
    if expected.get("valid_json") is False:
        with pytest.raises(ValueError):
            iproute.devices(recording.text())
        return
    keys = ("port", "state", "physical_state", "netdev", "lid", "sm_lid")
    if "devices" in expected:
        found = iproute.devices(recording.text())
        assert [(one.name, one.firmware, one.node_guid, one.node_type, one.protocol) for one in found] == [
            (one["name"], one["fw"], one["node_guid"], one["node_type"], one.get("protocol"))
            for one in expected["devices"]
        ]
    else:
        found_links = iproute.links(recording.text())
        wanted = [(one["dev"], *(one[key] for key in keys)) for one in expected.get("links", [])]
        assert [(link.device, *(getattr(link, key) for key in keys)) for link in found_links] == wanted
