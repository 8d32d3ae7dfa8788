# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs that instances get: no GPU twice under any of its names, and only GPUs that the node has."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gpu_assignment import (
    Node,
    Wish,
    assign,
    read_node,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import report
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu, MigDevice
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries


def uuid(number: int, kind: str = "GPU") -> str:
    return f"{kind}-{number:08x}-0a0b-4c0d-8e0f-1234567890ab"


def gpu(index: int, **changes: Any) -> dict[str, Any]:
    return asdict(Gpu(index=index, uuid=uuid(index), reported=True, pci_bus_id=f"0000:{index:02x}:00.0", **changes))


# Four GPUs, of which the third is divided into two MIG devices.
SLICES = [MigDevice(index=number, uuid=uuid(32 + number, "MIG")) for number in (0, 1)]
NODE = [gpu(0), gpu(1), gpu(2, mig_mode="enabled", mig_devices=SLICES), gpu(3)]
BARE = [asdict(Gpu(pci_bus_id=f"0000:{number:02x}:00.0")) for number in range(2)]


def names(*wishes: Any, gpus: list[dict[str, Any]] | None) -> list[tuple[str, ...]]:
    """The GPUs that the instances a, b, … get for their wishes."""
    given, problems = assigned(*wishes, gpus=gpus)
    assert problems == []
    return given


def assigned(*wishes: Any, gpus: list[dict[str, Any]] | None) -> tuple[list[tuple[str, ...]], list[str]]:
    asked = [
        Wish(name, name, tuple(map(str, wish)) if isinstance(wish, list) else wish)
        for name, wish in zip("abcdef", wishes, strict=False)
    ]
    given, problems = assign(asked, read_node(gpus))
    return given, [str(problem) for problem in problems]


def test_listed_gpus_keep_their_names() -> None:
    """An index stays an index and a UUID stays a UUID, so that a release is the same with and without the driver."""
    wish = [1, uuid(3), "2:0", uuid(33, "MIG")]
    given = (["1", uuid(3), "2:0", uuid(33, "MIG")],)
    assert [list(one) for one in names(wish, gpus=NODE)] == [*given]
    assert [list(one) for one in names(wish, gpus=None)] == [*given]
    # CDI distinguishes upper and lower case, so the driver's spelling is used.
    assert names([uuid(10).upper()], gpus=[gpu(10)]) == [(uuid(10),)]


def test_a_wish_for_a_number_of_gpus_gets_whole_and_free_gpus() -> None:
    """The second instance has GPU 0 by its UUID, and the GPU in MIG mode does not count as a whole GPU."""
    assert names(2, [uuid(0)], gpus=NODE) == [("1", "3"), (uuid(0),)]
    assert names(1, ["2:0"], 1, gpus=NODE) == [("0",), ("2:0",), ("1",)]


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        (([7],), "gpus: '7': is no working GPU of this node: the node has 0 (GPU-00000000-"),
        (([uuid(9)],), "is no working GPU of this node"),
        ((["2:7"],), f"2:1 ({uuid(33, 'MIG')})"),
        (([0], [uuid(0)]), f"gpus: '{uuid(0)}': is given to a already, as 0: a GPU serves one instance"),
        (([0, uuid(0)],), "is given to a already, as 0"),
        (([0], [0]), "b: gpus: '0': is given to a already: a GPU"),
        ((["2:0"], [uuid(32, "MIG")]), "is given to a already, as 2:0"),
        (([2],), f"is in MIG mode: list a MIG device of the GPU, 2:0 ({uuid(32, 'MIG')})"),
        ((4,), "gpus: 4: is more than the 3 free GPUs of this node, which has 4 GPUs (2 is in MIG mode"),
        ((1, [0, uuid(1), 3]), "is more than the 0 free GPUs of this node, which has 4 GPUs (b has 0, "),
    ],
)
def test_each_mistake_that_the_driver_shows_is_named(wishes: tuple[Any, ...], text: str) -> None:
    _given, problems = assigned(*wishes, gpus=NODE)
    assert len(problems) == 1
    assert text in problems[0]


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        (([2],), "is no GPU of this node: the PCI bus has 2"),
        ((["2:0"],), "is no GPU of this node: the PCI bus has 2"),
        ((3,), "is more than the 2 free GPUs of this node, which has 2 GPUs"),
        ((1, [uuid(8)], 1), "is more than the 0 free GPUs"),
        (([0], ["0:1"]), "is a MIG device of 0, which is given to a already"),
        ((["0:1"], [0]), "has the MIG device 0:1, which is given to a already"),
    ],
)
def test_each_mistake_that_is_known_without_the_driver_is_named(wishes: tuple[Any, ...], text: str) -> None:
    _given, problems = assigned(*wishes, gpus=BARE)
    assert len(problems) == 1
    assert text in problems[0]


def test_without_the_driver_names_are_trusted() -> None:
    assert names([uuid(8)], 1, gpus=BARE) == [(uuid(8),), ("0",)]
    assert names([uuid(9, "MIG")], 2, gpus=BARE) == [(uuid(9, "MIG"),), ("0", "1")]


def test_no_instance_gets_a_gpu_that_does_not_work() -> None:
    """A GPU that has fallen off the bus keeps its index in the report. A GPU that the driver does not list has none."""
    node = [gpu(0, lost=True), gpu(1), asdict(Gpu(uuid=uuid(2), pci_bus_id="0000:02:00.0"))]
    assert names(1, gpus=node) == [("1",)]
    assert "has fallen off the bus" in assigned([0], gpus=node)[1][0]
    assert "is no working GPU of this node" in assigned([uuid(2)], gpus=node)[1][0]
    assert "more than the 1 free GPUs of this node, which has 3 GPUs" in assigned(2, gpus=node)[1][0]


def test_a_gpu_in_mig_mode_without_mig_devices_is_refused() -> None:
    assert "the GPU has no MIG devices yet" in assigned([0], gpus=[gpu(0, mig_mode="enabled")])[1][0]


def test_every_mistake_is_reported_at_once() -> None:
    models = {"m": {"model": "/m"}, "two": {"model": "/two", "tensor-parallel-size": 2}}
    instances = [
        {"name": "a", "model": "m", "port": 5005, "gpus": [0]},
        {"name": "b", "model": "m", "port": 5006, "gpus": [uuid(0)]},
        {"name": "c", "model": "two", "port": 5007, "gpus": ["2:9"]},
    ]
    with pytest.raises(InputError) as caught:
        load_instances(instances, entries.read(models, catalogue.choose("0.32.0")), NODE)
    text = str(caught.value)
    for part in ("needs 2", "is given to a already, as 0", "'2:9': is no working GPU of this node"):
        assert part in text


WISHES = st.lists(
    st.one_of(
        st.integers(0, 3),
        st.lists(st.sampled_from(["0", "1", "2", "3", "2:0", "2:1", uuid(0), uuid(3), uuid(32, "MIG")]), max_size=3),
    ),
    max_size=5,
)


@given(WISHES, st.sampled_from([NODE, BARE, None]))
def test_no_device_is_given_twice(wishes: list[Any], gpus: list[dict[str, Any]] | None) -> None:
    """Either the wishes are refused, or each instance gets what it asks for, and no two share a device."""
    given, problems = assigned(*wishes, gpus=gpus)
    if problems:
        return
    node = read_node(gpus)
    devices = [node.find(name)[0] for one in given for name in one]
    for position, device in enumerate(devices):
        assert device is not None
        assert not any(other and device.overlaps(other) for other in devices[:position])
    for wish, one in zip(wishes, given, strict=True):
        assert len(one) == (len(wish) if isinstance(wish, list) else wish)


@pytest.mark.recordings("nvidia_smi_xml")
def test_every_device_of_a_real_machine_can_be_named(recording: Any) -> None:
    found = [asdict(one) for one in report.parse(recording.text()).gpus]
    node = read_node(found)
    for device in node.devices:
        assert node.find(device.name)[0] == device
        assert device.uuid is None or node.find(device.uuid)[0] == device
    whole = [device for device in node.devices if device.whole and not device.problem]
    assert len(assign([Wish("a", "a", len(whole))], node)[0][0]) == len(whole)


def test_without_the_fact_gpus_every_wish_is_granted() -> None:
    assert read_node(None) == Node()
    assert names(9, gpus=None) == [tuple(map(str, range(9)))]
