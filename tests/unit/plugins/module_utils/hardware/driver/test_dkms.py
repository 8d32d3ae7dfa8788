# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of ``dkms status``, in the forms of DKMS 2 and 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.dkms import Module, parse

KERNEL = "6.1.0-77-amd64"


@pytest.mark.parametrize(
    ("line", "module"),
    [
        # DKMS 2
        (f"nvidia, 470.7, {KERNEL}, x86_64: installed", Module("nvidia", "470.7", KERNEL, "x86_64", "installed")),
        ("nvidia-tesla-470, 470.7.01: added", Module("nvidia-tesla-470", "470.7.01", None, None, "added")),
        # DKMS 3
        (f"nvidia/580.7.01, {KERNEL}, x86_64: installed", Module("nvidia", "580.7.01", KERNEL, "x86_64", "installed")),
        (f"nvidia-tesla/535.7, {KERNEL}, x86_64: built", Module("nvidia-tesla", "535.7", KERNEL, "x86_64", "built")),
        ("nvidia-current-open/550.7.01: added", Module("nvidia-current-open", "550.7.01", None, None, "added")),
        ("nvidia/580.7.01: broken", Module("nvidia", "580.7.01", None, None, "broken")),
        (
            f"nvidia/580.7.01, {KERNEL}, aarch64: installed (WARNING! Diff between built and installed module!)"
            " (WARNING! Diff between built and installed module!)",
            Module(
                "nvidia",
                "580.7.01",
                KERNEL,
                "aarch64",
                "installed",
                ("WARNING! Diff between built and installed module!",) * 2,
            ),
        ),
        (
            f"nvidia/580.7.01, {KERNEL}, x86_64: installed (Original modules exist)",
            Module("nvidia", "580.7.01", KERNEL, "x86_64", "installed", ("Original modules exist",)),
        ),
        (
            f"zfs/2.7.7-1, {KERNEL}, x86_64: installed-weak from 6.1.0-70-amd64",
            Module("zfs", "2.7.7-1", KERNEL, "x86_64", "installed-weak"),
        ),
    ],
)  # fmt: skip
def test_a_line_of_dkms_status_is_a_module_with_its_state(line: str, module: Module) -> None:
    assert parse(f"{line}\n") == [module]


def test_lines_without_a_module_are_left_out() -> None:
    output = (
        "Deprecated feature: CLEAN (/var/lib/dkms/nvidia/580.7/source/dkms.conf)\n"
        "nvidia/580.7: broken\n"
        "Error! nvidia/580.7: Missing the module source directory or the symbolic link pointing to it.\n"
        "Manual intervention is required!\n"
    )
    assert [module.state for module in parse(output)] == ["broken"]
    assert parse("") == []


@pytest.mark.parametrize(
    ("note", "doubted"),
    [
        ("original_module exists", False),
        ("Original modules exist", False),
        ("WARNING! Missing some built modules!", True),
        ("Built modules are missing in the kernel modules folder", True),
        ("Differences between built and installed modules", True),
    ],
)
def test_only_the_note_about_an_original_module_is_harmless(note: str, doubted: bool) -> None:
    assert (Module("nvidia", "580.7", KERNEL, "x86_64", "installed", (note,)).doubt is not None) is doubted


@pytest.mark.parametrize(
    ("name", "driver", "is_open"),
    [
        ("nvidia", True, None),
        ("nvidia-current", True, False),
        ("nvidia-current-open", True, True),
        ("nvidia-tesla-535", True, False),
        ("nvidia-fs", False, False),
        ("zfs", False, False),
    ],
)
def test_the_name_shows_driver_and_flavour(name: str, driver: bool, is_open: bool | None) -> None:
    module = Module(name, "1", None, None, "added")
    assert (module.is_nvidia_driver, module.is_open) == (driver, is_open)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse(text)
