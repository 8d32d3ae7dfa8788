# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""XIDs and other failures in the kernel's log, of the synthetic machine and of recorded ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import kernel_log
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid

LOG = (Path(__file__).parent / "data/kern.log").read_text()


def find(text: str) -> tuple[list[xid.Xid], list[xid.KernelError]]:
    return xid.find(kernel_log.since_boot(text))


def test_only_xids_of_this_boot_count() -> None:
    xids, errors = find(LOG)
    assert [(one.pci_bus_id, one.xid, one.time_s) for one in xids] == [
        ("0000:9d:00.0", 79, 119.25),
        ("0000:1b:00.0", 31, 179.0),
    ]
    assert xids[0].text == (
        "NVRM: Xid (PCI:0000:9D:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    )
    assert errors == [
        xid.KernelError(
            "0000:9d:00.0", "fallen_off_bus", 119.2501, "NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus."
        )
    ]


def test_an_xid_in_records_of_the_kernels_ring_buffer_is_found() -> None:
    message = "NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE"
    text = f"6,10,5000000,-;Linux version 6.12.0\n SUBSYSTEM=pci\n3,11,7250000,-;{message}\n"
    assert find(text)[0] == [xid.Xid("0000:1b:00.0", 48, 7.25, message)]


FALL = [
    "NVRM: The NVIDIA GPU 0000:1b:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
]


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("3,1,9500000,-;" + r"\x0a".join(FALL), 9.5),
        (f"[    9.500000] {FALL[0]}\n" + "\n".join(f"               {line}" for line in FALL[1:]), 9.5),
        ("\n".join(f"kernel: {line}" for line in FALL), None),
        ("[    9.500000] " + " ".join(FALL), 9.5),
    ],
)
def test_a_gpu_that_fell_off_the_bus_without_an_xid_is_an_error(text: str, time_s: float | None) -> None:
    xids, errors = find(text)
    assert xids == []
    assert [(one.pci_bus_id, one.kind, one.time_s) for one in errors] == [("0000:1b:00.0", "fallen_off_bus", time_s)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x62:0x65:1792)", "init_failed"),
        ("NVRM: installed in this system requires use of the NVIDIA open kernel modules.", "needs_open_module"),
        ("NVRM: NVIDIA 470.xx Legacy drivers. Please visit", "legacy_gpu"),
    ],
)
def test_a_gpu_that_the_driver_cannot_use_is_an_error(line: str, kind: str) -> None:
    assert [one.kind for one in find(line)[1]] == [kind]


def test_lines_of_other_drivers_are_no_errors() -> None:
    assert find("usb 1-1: device has fallen off the bus\n" * 9) == ([], [])
    assert find("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20009, Non-fatal\n") == ([], [])


def test_a_gpu_that_only_an_earlier_message_names_is_not_the_gpu_of_an_error() -> None:
    text = "NVRM: GPU at PCI:0000:1b:00: GPU-1\n" + "NVRM: a word\n" * 5 + "NVRM: fallen off the bus and more\n"
    assert [one.pci_bus_id for one in find(text)[1]] == [None]


@given(st.integers(0, len(LOG)), st.integers(0, 200))
def test_a_log_cut_anywhere_is_no_exception(start: int, length: int) -> None:
    find(LOG[start : start + length])


@given(st.text())
def test_any_text_is_no_exception(text: str) -> None:
    find(text)
    find(f"3,1,2,-;NVRM: {text}")


@pytest.mark.parametrize("stamp", ["3,1,{},-;", "[{}.0] "])
def test_an_absurd_time_is_no_exception(stamp: str) -> None:
    assert len(find(f"{stamp.format('9' * 5000)}NVRM: Xid (PCI:0000:1b:00): 48, DBE")[0]) == 1


@pytest.mark.recordings("kernel_xid")
def test_the_errors_in_recorded_logs_are_found(recording: Any) -> None:
    expected = recording.expected
    xids, errors = find(recording.text())
    assert Counter(str(one.xid) for one in xids) == expected["by_xid"]
    assert {one.pci_bus_id for one in xids} == {f"{address}.0" for address in expected["pcis"]}
    texts = [one.text for one in xids] + [one.text for one in errors]
    assert any("fallen off the bus" in text for text in texts) == expected["fallen_off_bus"]
    assert ("init_failed" in {one.kind for one in errors}) == expected["rm_init_failed"]
