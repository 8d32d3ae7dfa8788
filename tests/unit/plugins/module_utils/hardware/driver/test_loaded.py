# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loaded module and the one on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import loaded
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.loaded import Build

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.7.01  Release Build  (me@here)\nGCC version: 12\n"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.7.01  Tue Jan  7 07:07:07 UTC 2025\n"


def load(root: Path, banner: str | None, version: str = "") -> None:
    """What a loaded module leaves in /proc and /sys."""
    (root / "sys/module/nvidia").mkdir(parents=True)
    if version:
        (root / "sys/module/nvidia/version").write_text(f"{version}\n")
    if banner is not None:
        (root / "proc/driver/nvidia").mkdir(parents=True)
        (root / "proc/driver/nvidia/version").write_text(banner)


@pytest.mark.parametrize(
    ("banner", "version", "build"),
    [
        (OPEN, "", Build("580.7.01", "open")),
        (PROPRIETARY, "", Build("535.7.01", "proprietary")),
        (None, "550.7", Build("550.7", None)),
        ("something else\n", "", Build(None, None)),
    ],
)
def test_the_loaded_module_has_version_and_flavour(
    tmp_path: Path, banner: str | None, version: str, build: Build
) -> None:
    load(tmp_path, banner, version)
    assert loaded.loaded(tmp_path) == build


def test_without_files_in_proc_and_sys_no_module_is_loaded(tmp_path: Path) -> None:
    assert loaded.loaded(tmp_path) is None


@pytest.mark.recordings("proc_driver_nvidia")
def test_the_banners_of_recorded_machines_are_read(recording: Any, tmp_path: Path) -> None:
    if not isinstance(recording.expected, dict) or "driver_version" not in recording.expected:
        pytest.skip("has facts of GPUs, not of the module")
    load(tmp_path, recording.text())
    flavor = "open" if recording.expected["open_module"] else "proprietary"
    assert loaded.loaded(tmp_path) == Build(recording.expected["driver_version"], flavor)


@pytest.mark.parametrize(
    ("output", "build"),
    [
        ("filename: /x.ko\nlicense:        Dual MIT/GPL\nversion:        580.7.01\n", Build("580.7.01", "open")),
        ("license:        NVIDIA\nversion:        535.7\n", Build("535.7", "proprietary")),
        ("version:        535.7\nsrcversion:     ABC\n", Build("535.7", None)),
        ("\nmodinfo: ERROR: Module nvidia not found.\n", None),
    ],
)
def test_modinfo_has_version_and_flavour_of_the_module_on_disk(output: str, build: Build | None) -> None:
    assert loaded.modinfo(output) == build


@given(st.text())
def test_any_text_of_modinfo_is_read(text: str) -> None:
    loaded.modinfo(text)


@pytest.mark.parametrize(
    ("running", "on_disk", "differs"),
    [
        (Build("580.7", "open"), Build("580.7", "open"), False),
        (Build("580.7", "open"), Build("580.8", "open"), True),
        (Build("580.7", "open"), Build("580.7", "proprietary"), True),
        (Build("580.7", None), Build("580.7", "open"), False),
        (Build(None, None), Build("580.7", "open"), False),
        (None, Build("580.7", "open"), False),
        (Build("580.7", "open"), None, False),
    ],
)
def test_only_known_values_of_both_modules_can_differ(
    running: Build | None, on_disk: Build | None, differs: bool
) -> None:
    assert (loaded.difference(running, on_disk) is not None) is differs


def test_a_difference_names_the_loaded_and_the_installed_module() -> None:
    text = loaded.difference(Build("580.7", "open"), Build("580.8", "open"))
    assert text == "the loaded module is open 580.7, the installed one open 580.8"
