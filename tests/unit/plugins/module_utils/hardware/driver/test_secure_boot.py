# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot, by the firmware's variables and by the output of mokutil."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import secure_boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.secure_boot import (
    GLOBAL,
    SHIM,
    SecureBoot,
)


def firmware(root: Path, **variables: int) -> None:
    """A machine that was started by UEFI."""
    directory = root / secure_boot.EFI / "efivars"
    directory.mkdir(parents=True)
    for name, value in variables.items():
        vendor = SHIM if name.startswith("Mok") else GLOBAL
        (directory / f"{name}-{vendor}").write_bytes(bytes([6, 0, 0, 0, value]))


def test_a_machine_with_a_bios_has_no_secure_boot(tmp_path: Path) -> None:
    assert secure_boot.state(tmp_path, "SecureBoot enabled") == SecureBoot(False, False, None)


@pytest.mark.parametrize(
    ("variables", "mokutil", "state"),
    [
        ({"SecureBoot": 1, "SetupMode": 0}, "", SecureBoot(True, True, False)),
        ({"SecureBoot": 0, "SetupMode": 1}, "SecureBoot enabled", SecureBoot(True, False, True)),
        ({"SecureBoot": 1, "SetupMode": 0, "MokSBStateRT": 1}, "", SecureBoot(True, False, False)),
        ({}, "SecureBoot enabled\n", SecureBoot(True, True, None)),
        ({}, "SecureBoot disabled\nPlatform is in Setup Mode\n", SecureBoot(True, False, None)),
        ({}, "SecureBoot enabled\nSecureBoot validation is disabled in shim\n", SecureBoot(True, False, None)),
        ({}, "EFI variables are not supported on this system\n", SecureBoot(True, None, None)),
    ],
)
def test_the_state_of_secure_boot_comes_from_the_variables_or_from_mokutil(
    tmp_path: Path, variables: dict[str, int], mokutil: str, state: SecureBoot
) -> None:
    firmware(tmp_path, **variables)
    assert secure_boot.state(tmp_path, mokutil) == state


def test_a_variable_of_another_length_is_unknown(tmp_path: Path) -> None:
    firmware(tmp_path)
    for data in (b"\1", b"\6\0\0\0\1\0"):
        (tmp_path / secure_boot.EFI / "efivars" / f"SecureBoot-{GLOBAL}").write_bytes(data)
        assert secure_boot.state(tmp_path) == SecureBoot(True, None, None)


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("/var/lib/dkms/mok.pub is already enrolled", "enrolled"),
        ("/var/lib/dkms/mok.pub is not enrolled", "missing"),
        ("/var/lib/dkms/mok.pub is already in the enrollment request", "pending"),
        ("Failed to get file status, /var/lib/dkms/mok.pub", None),
        ("", None),
    ],
)
def test_mokutil_reports_whether_a_key_is_enrolled(output: str, key: str | None) -> None:
    assert secure_boot.parse_key(output) == key


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    secure_boot.parse_key(text)
    secure_boot.parse_state(text)
    secure_boot.certificate(text)


def test_the_configuration_of_dkms_names_certificate_and_key() -> None:
    assert secure_boot.certificate("# mok_certificate=/a\n") == "/var/lib/dkms/mok.pub"
    assert secure_boot.signing_key("mok_certificate=/a.der\n") == "/var/lib/dkms/mok.key"
    assert secure_boot.signing_key("mok_certificate=/a.der\n mok_signing_key='/a.key' # ours\n") == "/a.key"
    assert secure_boot.certificate('mok_certificate="/a.der"\nmok_certificate=/b.der\n') == "/b.der"


ENFORCED = SecureBoot(True, True, False)


@pytest.mark.parametrize(
    ("boot", "key", "words"),
    [
        (ENFORCED, "enrolled", None),
        (SecureBoot(True, False, None), None, None),
        (SecureBoot(True, None, None), None, None),
        (SecureBoot(True, True, True), "missing", None),
        (ENFORCED, "missing", "mokutil --import /key"),
        (ENFORCED, "pending", "Enroll MOK"),
        (ENFORCED, None, "mokutil --test-key /key"),
    ],
)
def test_a_key_that_is_not_enrolled_is_a_problem_only_if_secure_boot_is_enforced(
    boot: SecureBoot, key: str | None, words: str | None
) -> None:
    found = secure_boot.problem(boot, key, "/key")
    assert found is None if words is None else words in str(found)
