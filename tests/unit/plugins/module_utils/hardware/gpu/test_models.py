# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of a GPU's facts: every key exists, None is an unknown value, and no two GPUs share a part."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import models
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import (
    Clocks,
    Ecc,
    Fabric,
    Gpu,
    MigDevice,
    Nvlink,
    Pcie,
    Process,
    RemappedRows,
    RetiredPages,
    Unreadable,
    Utilization,
)

PARTS = {
    "pcie": Pcie,
    "ecc": Ecc,
    "retired_pages": RetiredPages,
    "remapped_rows": RemappedRows,
    "clocks": Clocks,
    "utilization": Utilization,
    "fabric": Fabric,
}
"""The parts that every GPU has, even if all values are unknown."""

KNOWN = {
    "excluded": False,
    "lost": False,
    "reported": False,
    "mig_devices": [],
    "unreadable": [],
}
"""Values that are never None."""


def test_a_new_gpu_has_every_key_with_its_default() -> None:
    facts = asdict(Gpu())
    assert list(facts) == [one.name for one in fields(Gpu)]
    for name, value in facts.items():
        if name in PARTS:
            assert value == dict.fromkeys(one.name for one in fields(PARTS[name])), name
        else:
            assert value == KNOWN.get(name), name


@pytest.mark.parametrize("part", [*PARTS.values(), MigDevice, Process])
def test_a_new_part_has_no_value(part: type[Any]) -> None:
    assert set(asdict(part()).values()) == {None}


def test_a_new_gpu_has_no_links() -> None:
    """If nvidia-smi lists no links, the part has the message of nvidia-smi."""
    assert Gpu().nvlink is None
    assert asdict(Nvlink(message="inactive")) == {
        "active": [],
        "inactive": [],
        "speed_gb_per_s": None,
        "message": "inactive",
    }


def test_no_two_gpus_share_a_part() -> None:
    one, other = Gpu(), Gpu()
    for field in fields(Gpu):
        value = getattr(one, field.name)
        if is_dataclass(value) or isinstance(value, list):
            assert value is not getattr(other, field.name), field.name
    one.mig_devices.append(MigDevice(index=0))
    one.unreadable.append(Unreadable("power_draw", "Unknown Error"))
    one.ecc.current = "enabled"
    assert other == Gpu()


def test_an_unreadable_value_must_have_element_and_text() -> None:
    with pytest.raises(TypeError):
        Unreadable()  # type: ignore[call-arg]  # lacks the two required fields


def test_facts_are_plain_data() -> None:
    gpu = Gpu(
        index=1,
        mig_devices=[MigDevice(index=0, profile="3g.40gb")],
        nvlink=Nvlink([0], [1], 26.5),
        processes=[Process(4711, "C", "vllm")],
        unreadable=[Unreadable("power_draw", "Unknown Error")],
    )
    facts = asdict(gpu)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["mig_devices"][0]["profile"] == "3g.40gb" and facts["processes"][0]["pid"] == 4711
    assert facts["unreadable"] == [{"element": "power_draw", "text": "Unknown Error"}]


def test_every_dataclass_is_tested_here() -> None:
    forms = {one for one in vars(models).values() if isinstance(one, type) and is_dataclass(one)}
    assert forms == {Gpu, Nvlink, MigDevice, Process, Unreadable, *PARTS.values()}
