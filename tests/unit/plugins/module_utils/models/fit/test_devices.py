# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of fit/devices.py and fit/flags.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.products import PRODUCTS
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import devices, flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import Device
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags

GPUS = [
    {
        "index": 0,
        "uuid": "GPU-0000",
        "product": "H100-80GB",
        "compute_capability": "9.0",
        "memory_total_mib": 81559,
        "memory_reserved_mib": 559,
        "mig_devices": [],
    },
    {
        "index": 1,
        "uuid": "GPU-1111",
        "product": None,
        "name": "NVIDIA Unheard-Of",
        "compute_capability": None,
        "memory_total_mib": None,
        "memory_reserved_mib": None,
        "mig_devices": [{"index": 3, "uuid": "MIG-2222", "profile": "1g.10gb", "memory_total_mib": 9856}],
    },
]


def test_names_stand_for_gpus() -> None:
    found = devices.hypothetical("8xH100-80GB")
    assert found == [Device("H100-80GB", 81559, (9, 0))] * 8
    assert [device.name for device in devices.hypothetical("2x l4, t4")] == ["L4", "L4", "T4"]
    assert devices.hypothetical("4 × L40S")[0].capability == "8.9"
    for product in PRODUCTS:
        assert devices.hypothetical(f"2x{product.product}")[1].memory_mib == product.memory_mib


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8xH100-80G", "did you mean 'H100-80GB'"),
        ("RTX 4090", "did you mean 'RTX-4090'"),
        ("", "known: "),
        ("0xL4", "must be 1 to 1024"),
        ("99999xL4", "must be 1 to 1024"),
        ("4xL4,", "known: "),
    ],
)
def test_a_name_that_is_not_known_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        devices.hypothetical(text)


def test_a_gpu_without_a_driver_has_the_memory_of_its_product() -> None:
    """The facts do not guess it, and a plan is made before there is a driver."""
    bare = {"index": None, "product": "H100-80GB", "compute_capability": "9.0", "memory_total_mib": None}
    assert devices.from_facts([{**bare, "reported": False}]) == [Device("H100-80GB", 81559, (9, 0))]
    assert devices.from_facts([{**bare, "reported": False, "product": None, "name": "x"}])[0].memory_mib is None
    # The tool reports it, and not its memory: something is wrong there.
    assert devices.from_facts([{**bare, "reported": True}])[0].memory_mib is None


def test_what_only_the_driver_can_name_is_unknown_before_there_is_one() -> None:
    bare = {"index": None, "product": "L4", "compute_capability": "8.9", "memory_total_mib": None, "reported": False}
    l4, unknown = Device("L4", 23034, (8, 9)), Device("GPU", None)
    assert devices.from_facts([bare, bare], ["GPU-1111", "1", "0:3"]) == [unknown, l4, unknown]
    with pytest.raises(ValueError, match="has no GPU '2'"):
        devices.from_facts([bare, bare], ["2"])
    with pytest.raises(ValueError, match="has no GPU 'GPU-1111'"):
        devices.from_facts([{**bare, "index": 0, "uuid": "GPU-0000", "reported": True}, bare], ["GPU-1111"])


def test_takes_gpus_from_facts() -> None:
    first, second = devices.from_facts(GPUS)
    # What the driver keeps for itself is not CUDA's.
    assert first == Device("H100-80GB", 81000, (9, 0))
    assert second == Device("NVIDIA Unheard-Of", None, None)
    assert devices.from_facts(GPUS, ["GPU-1111", "0"]) == [second, first]
    assert devices.from_facts(GPUS, ["MIG-2222"]) == [Device("NVIDIA Unheard-Of 1g.10gb", 9856, None)]
    assert devices.from_facts(GPUS, ["1:3"]) == devices.from_facts(GPUS, ["MIG-2222"])
    assert devices.from_facts([], None) == []
    with pytest.raises(ValueError, match="has no GPU '5'"):
        devices.from_facts(GPUS, ["5"])


def test_reads_flags_as_the_engine_does() -> None:
    found, misfits = flags.read(
        {
            "model": "/models/x",
            "description": "ours",
            "tensor-parallel-size": "2",
            "max-model-len": "32K",
            "kv-cache-memory-bytes": "1.5g",
            "gpu-memory-utilization": 0.5,
            "dtype": "half",
            "enable-expert-parallel": True,
            "quantization": None,
            "trust-remote-code": False,
        }
    )
    assert misfits == []
    assert found == Flags(
        tensor_parallel_size=2,
        max_model_len=32768,
        kv_cache_memory_bytes=1_500_000_000,
        gpu_memory_utilization=0.5,
        dtype="float16",
        enable_expert_parallel=True,
    )
    assert flags.read({"pipeline-parallel-size": "1T"})[0].pipeline_parallel_size == 1
    assert flags.read({"max-model-len": "auto"})[0].max_model_len == flags.AUTO
    assert flags.read({"max-model-len": -1})[0].max_model_len == flags.AUTO
    assert flags.read({"device-memory-utilization": 0.4})[0].gpu_memory_utilization == 0.4


@pytest.mark.parametrize(
    ("text", "number"),
    [("8192", 8192), ("32k", 32000), ("32K", 32768), ("25.6k", 25600), ("1M", 1 << 20), (7, 7), (" 7 ", 7)],
)
def test_counts_as_the_engine_does(text: Any, number: int) -> None:
    assert flags.count(text) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1.5K", "k", "", True, None, [1], "1e3", "8192x"])
def test_what_is_no_count(text: Any) -> None:
    assert flags.count(text) is None


def test_names_every_value_that_cannot_be() -> None:
    found, misfits = flags.read(
        {
            "tensor-parallel-size": 0,
            "gpu-memory-utilization": 92,
            "max-model-len": "long",
            "enforce-eager": "yes",
            "cpu-offload-gb": "much",
        }
    )
    assert found == Flags()
    assert [(one.check, one.key) for one in misfits] == [
        ("value", "tensor-parallel-size"),
        ("value", "gpu-memory-utilization"),
        ("value", "max-model-len"),
        ("value", "enforce-eager"),
        ("value", "cpu-offload-gb"),
    ]
    assert str(misfits[1]) == "gpu-memory-utilization: 92: must be more than 0 and at most 1"


@given(
    st.dictionaries(
        st.sampled_from([name.replace("_", "-") for name in Flags.__dataclass_fields__]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=6)
        | st.lists(st.integers(), max_size=2),
    )
)
def test_any_value_is_a_flag_or_a_misfit(entry: dict[str, Any]) -> None:
    found, misfits = flags.read(entry)
    assert found.world_size >= 1
    assert 0 < found.gpu_memory_utilization <= 1
    assert {one.key for one in misfits} <= set(entry)
