# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks and MIG devices, of the synthetic machine and of recorded ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import nvlink
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Nvlink

FIRST, SECOND = (f"GPU-0a0b0c0d-1111-4222-8333-0000000000{bus}" for bus in ("1b", "9d"))


def test_a_gpu_has_active_and_inactive_links_or_a_message(sample: Callable[[str], str]) -> None:
    assert nvlink.links(sample("nvlink.txt")) == {
        FIRST: Nvlink(active=[0, 2], inactive=[1], speed_gb_per_s=26.562),
        SECOND: Nvlink(message="Nvlink queries are not supported for Devices in MIG mode"),
    }


def test_mig_devices_have_profile_and_uuid(sample: Callable[[str], str]) -> None:
    assert nvlink.mig_devices(sample("list.txt")) == {
        (SECOND, 0): ("3g.40gb", "MIG-aaaaaaaa-0000-5000-8000-000000000000"),
        (SECOND, 1): ("1g.10gb+me", "MIG-bbbbbbbb-0000-5000-8000-000000000001"),
    }


def test_the_uuids_of_mig_devices_of_old_drivers_are_read() -> None:
    text = f"GPU 0: A100 (UUID: {FIRST})\n  MIG 1c.3g.20gb Device 4: (UUID: MIG-{FIRST}/7/0)\n"
    assert nvlink.mig_devices(text) == {(FIRST, 4): ("1c.3g.20gb", f"MIG-{FIRST}/7/0")}


@given(st.text())
def test_any_text_is_no_exception(text: str) -> None:
    assert nvlink.links(text) == {} or "GPU-" in text
    nvlink.links(f"GPU 0: x (UUID: {FIRST})\n{text}")
    nvlink.mig_devices(f"GPU 0: x (UUID: {FIRST})\n{text}")


@pytest.mark.recordings("nvlink")
def test_recorded_links_are_read(recording: Any) -> None:
    found = nvlink.links(recording.text())
    known = recording.expected["gpus"]
    if len({gpu["uuid"] for gpu in known}) < len(known):
        pytest.skip("all GPUs of the recording have one UUID")
    for gpu in known:
        links = found[gpu["uuid"]]
        assert (links.active, links.inactive) == (gpu["active"], gpu["inactive"])
        assert (links.speed_gb_per_s, links.message) == (gpu.get("gbs"), gpu["message"])
