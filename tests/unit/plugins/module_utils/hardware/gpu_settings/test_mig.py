# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of nvidia-smi mig, as several versions print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import mig

PROFILES = """\
+-------------------------------------------------------------------------------+
| GPU instance profiles:                                                        |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                                Free/Total   GiB              CE    JPEG  OFA  |
|===============================================================================|
|   3  MIG 1g.18gb         19     0/7        16.00      No     16     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   3  MIG 1g.18gb+me      20     0/1        16.00      No     16     1     0   |
|                                                               1     1     1   |
+-------------------------------------------------------------------------------+
|   3  MIG 3g.71gb          9     2/2        69.50      No     60     3     0   |
|                                                               3     3     0   |
+-------------------------------------------------------------------------------+
|   3  MIG 7g.141gb         0     0/1        140.00     No     132    7     0   |
|                                                               8     7     1   |
+-------------------------------------------------------------------------------+
"""
# With less white space, as in documents and copies.
GPU_INSTANCES = """\
| GPU Name Profile Instance Placement |
| ID ID Start:Size |
|====================================================|
| 3 MIG 3g.71gb 9 1 4:4 |
|   3  MIG 3g.71gb             9        2          0:4     |
"""
COMPUTE_INSTANCES = """\
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   3      1       MIG 3g.71gb          2         0          0:3     |
+--------------------------------------------------------------------+
|   3      2       MIG 1c.3g.71gb       0         0          0:1     |
+--------------------------------------------------------------------+
|   3      2       MIG 1c.3g.71gb       0         1                  |
"""


def test_profiles_gpu_instances_and_compute_instances_are_read_from_their_tables() -> None:
    assert mig.profiles(PROFILES) == [
        mig.Profile("1g.18gb", 19, 7, 16),
        mig.Profile("1g.18gb+me", 20, 1, 16),
        mig.Profile("3g.71gb", 9, 2, 69.5),
        mig.Profile("7g.141gb", 0, 1, 140),
    ]
    assert mig.instances(GPU_INSTANCES, COMPUTE_INSTANCES) == [
        mig.GpuInstance(1, "3g.71gb", ("3g.71gb",)),
        mig.GpuInstance(2, "3g.71gb", ("1c.3g.71gb", "1c.3g.71gb")),
    ]
    # Older versions have no column for the placement.
    older = "|   0      7       MIG 1g.5gb           0         0     |\n"
    assert mig.instances("|   0  MIG 1g.5gb  19  7  0:1  |", older) == [mig.GpuInstance(7, "1g.5gb", ("1g.5gb",))]


def test_a_gpu_instance_counts_as_its_profile_only_with_one_whole_compute_instance() -> None:
    assert mig.layout([mig.GpuInstance(1, "7g.80gb", ("7g.80gb",))]) == ["7g.80gb"]
    for computes in ((), ("1c.7g.80gb",), ("7g.80gb", "7g.80gb")):
        assert mig.layout([mig.GpuInstance(1, "7g.80gb", computes)]) != ["7g.80gb"]


def test_larger_profiles_come_first() -> None:
    names = ["1g.10gb", "1g.20gb", "3g.40gb", "1g.10gb+me", "4g.40gb", "2g.20gb"]
    assert mig.in_order(names) == ["4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb", "1g.10gb+me"]


def test_devices_that_exceed_the_memory_only_by_rounding_fit() -> None:
    offered = [mig.Profile("1g.10gb", 19, 7, 10), mig.Profile("3g.40gb", 9, 2, 40), mig.Profile("7g.80gb", 0, 1, 79.5)]
    assert mig.misfits(["3g.40gb", "3g.40gb"], offered) == []
    assert mig.misfits(["3g.40gb", "3g.40gb", "1g.10gb"], offered) != []


@pytest.mark.parametrize("text", ["No GPU instances found: Not Found", "No MIG-enabled devices found.\n"])
def test_the_message_of_an_empty_table_is_recognised(text: str) -> None:
    assert mig.NONE.search(text)
    assert not mig.NONE.search("Unable to list GPU instances: Insufficient Permissions")


@given(st.integers(0, len(PROFILES)), st.text(max_size=5), st.integers(0, 30))
def test_a_mangled_table_is_never_an_exception(cut: int, noise: str, gap: int) -> None:
    for text in (PROFILES, GPU_INSTANCES, COMPUTE_INSTANCES):
        mangled = text[:cut] + noise + text[cut + gap :]
        assert len(mig.profiles(mangled)) <= 4
        mig.instances(mangled, mangled)
        mig.misfits(["3g.71gb", "3g.71gb"], mig.profiles(mangled))
