# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer, by its name, its first bytes and its logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import runfile
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import File, Installed, Origin

LOG = """\
nvidia-installer log file '/var/log/nvidia-installer.log'
installer version: 580.7.01

-> Running distribution scripts
WARNING: The compiler differs.
-> Building kernel modules
ERROR: Failed to run `dkms build -m nvidia -v 580.7.01`:
       make.log says more.

ERROR: Installation has failed.  Please see the file for details.
-> done
"""


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("controller:/srv/a.run", Origin("controller", "/srv/a.run")),
        ("/srv/a.run", Origin("node", "/srv/a.run")),
        ("https://host/d/a.run?x=/b", Origin("url", "https://host/d/a.run?x=/b")),
        ("http://host/a.run", None),
        ("https:///a.run", None),
        ("https://[host/a.run", None),
        ("controller:a.run", None),
        ("a.run", None),
        ("/srv/", None),
        ("", None),
    ],
)
def test_an_installer_is_on_the_controller_on_the_node_or_at_a_url(text: str, origin: Origin | None) -> None:
    assert runfile.origin(text) == origin
    if origin:
        assert origin.name == "a.run"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("NVIDIA-Linux-x86_64-580.7.01.run", File("580.7.01", "x86_64")),
        ("NVIDIA-Linux-x86_64-595.71-no-compat32.run", File("595.71", "x86_64")),
        ("NVIDIA-Linux-aarch64-580.7.01-grid.run", File("580.7.01", "aarch64")),
        ("driver.run", File(None, None)),
        ("NVIDIA-Linux-x86_64-580.run", File(None, None)),
    ],
)
def test_the_name_of_an_installer_has_version_and_architecture(name: str, file: File) -> None:
    assert runfile.of_name(name) == file


def test_the_first_bytes_of_an_installer_have_version_and_architecture() -> None:
    script = b'#!/bin/sh\nlabel="NVIDIA driver 535.1.01"\ntargetdir="NVIDIA-Linux-x86_64-580.7.01"\nexit 0\n'
    assert runfile.of_header(script + b"\xff\x00" * 70) == File("580.7.01", "x86_64")
    assert runfile.of_header(script.replace(b'"', b"")) == File("580.7.01", "x86_64")
    assert runfile.of_header(b"\x7fELF targetdir") == File(None, None)


def test_only_known_options_are_used() -> None:
    help_text = "  -z, --no-nouveau-check\n\n  --rebuild-initramfs, --no-rebuild-initramfs\n\n  --no-x-checks\n"
    options = ["--no-x-check", "--no-nouveau-check", "--no-rebuild-initramfs", "--skip-module-load"]
    assert runfile.known_options(options, help_text) == ["--no-nouveau-check", "--no-rebuild-initramfs"]
    assert runfile.known_options(options, "") == []


@pytest.mark.parametrize(
    ("log", "version"),
    [
        ("580.7.01\nNVIDIA Accelerated Graphics Driver for Linux-x86_64 (580.7.01)\n0: /usr/bin/x\n", "580.7.01"),
        ("1.0-0 (180.29)\ndescription 535.1.01\n", "180.29"),
        ("garbage\n580.7.01\n", None),
        ("1580.7.01.2\n", None),
        ("", None),
    ],
)
def test_the_log_of_the_installer_has_the_version_of_its_driver(log: str, version: str | None) -> None:
    assert runfile.installed_version(log) == version


def test_a_driver_outside_dkms_is_not_the_wanted_driver() -> None:
    assert Installed("580.7.01", None, registered=True).is_driver("580.7.01", "open")
    assert not Installed("580.7.01", None, registered=False).is_driver("580.7.01", "open")


def test_the_errors_of_a_log_are_quoted_or_all_lines_if_it_has_none() -> None:
    errors = runfile.complaint(LOG)
    assert errors.splitlines() == [
        "ERROR: Failed to run `dkms build -m nvidia -v 580.7.01`:",
        "       make.log says more.",
        "ERROR: Installation has failed.  Please see the file for details.",
    ]
    assert runfile.complaint("one\n\ntwo\n") == "one\ntwo"
    assert runfile.complaint("") == ""
    assert len(runfile.complaint("ERROR: x\n" * 70).splitlines()) == runfile.QUOTED_LINES


@given(st.text(), st.binary())
def test_any_text_is_read(text: str, data: bytes) -> None:
    runfile.origin(text)
    runfile.of_name(text)
    runfile.of_header(data)
    runfile.installed_version(text)
    runfile.complaint(text)
