# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads whether Secure Boot is on, and whether DKMS's key is enrolled in the firmware. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs

EFI = "sys/firmware/efi"
VARIABLES = f"{EFI}/efivars"

GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The vendor of the firmware's own variables. Source: EFI_GLOBAL_VARIABLE of the UEFI specification."""

SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
"""The vendor of shim's variables. Source: SHIM_LOCK_GUID of shim."""

ATTRIBUTES = 4
"""Bytes before the value of a variable in efivarfs. Source: Documentation/filesystems/efivarfs.rst of the kernel."""

CERTIFICATE, KEY = "/var/lib/dkms/mok.pub", "/var/lib/dkms/mok.key"
"""The certificate and key that DKMS creates, unless framework.conf names others. Source: prepare_mok of
/usr/sbin/dkms."""

ENROLLED, PENDING, MISSING = "enrolled", "pending", "missing"
"""States of a key. Pending: the next boot asks on the console whether to enrol it."""

SETTING = re.compile(r"^\s*(mok_certificate|mok_signing_key)=[\"']?([^\"'\s#]+)", re.MULTILINE)


@dataclass(frozen=True)
class SecureBoot:
    """State of the firmware; None if unknown."""

    efi: bool
    """False if a BIOS has booted the machine, without Secure Boot."""
    enabled: bool | None
    """Whether unsigned modules are refused."""
    setup_mode: bool | None
    """Whether the firmware has no platform key yet and enforces nothing."""


def state(root: Path, mokutil: str = "") -> SecureBoot:
    """Secure Boot by the firmware's variables, or else by the output of ``mokutil --sb-state``."""
    if not (root / EFI).is_dir():
        return SecureBoot(efi=False, enabled=False, setup_mode=None)
    enabled, setup_mode = _variable(root, "SecureBoot", GLOBAL), _variable(root, "SetupMode", GLOBAL)
    # After mokutil --disable-validation, shim validates nothing although the firmware reports Secure Boot as enabled.
    ignored = _variable(root, "MokSBStateRT", SHIM)
    if enabled is None:
        enabled = parse_state(mokutil)
    return SecureBoot(True, False if ignored else enabled, setup_mode)


def parse_state(output: str) -> bool | None:
    """Whether Secure Boot is on by the output of ``mokutil --sb-state``; None if unknown."""
    if re.search(r"validation is disabled in shim", output, re.IGNORECASE):
        return False
    match = re.search(r"^\s*SecureBoot\s+(enabled|disabled)\b", output, re.IGNORECASE | re.MULTILINE)
    return None if match is None else match[1].lower() == "enabled"


def parse_key(output: str) -> str | None:
    """ENROLLED, PENDING or MISSING by the output of ``mokutil --test-key``; None if unknown.

    The exit status is not used, because it differs between versions.
    """
    if re.search(r"already in the enrollment request", output, re.IGNORECASE):
        return PENDING
    if re.search(r"is not enrolled", output, re.IGNORECASE):
        return MISSING
    if re.search(r"is already (?:enrolled|in (?:the )?(?:db|MokList))|is enrolled", output, re.IGNORECASE):
        return ENROLLED
    return None


def certificate(configuration: str) -> str:
    """The path of DKMS's certificate, by its configuration files, joined in their order. The last setting wins."""
    return dict(SETTING.findall(configuration)).get("mok_certificate", CERTIFICATE)


def signing_key(configuration: str) -> str:
    """The path of DKMS's private key, by its configuration files as in `certificate`."""
    return dict(SETTING.findall(configuration)).get("mok_signing_key", KEY)


def problem(boot: SecureBoot, key: str | None, path: str) -> str | None:
    """Why the kernel would, or may, refuse the driver's module, and what a person must do.

    None if the kernel would load the module, or if the state of Secure Boot is unknown.
    """
    if not boot.enabled or boot.setup_mode or key == ENROLLED:
        return None
    steps = (
        "at the next boot, on the machine's own console or its BMC's, choose Enroll MOK, Continue, Yes, and type the "
        "password of the request (nvidia_driver_mok_password, if the role made it), on a keyboard with the layout "
        "of the United States. Without this the kernel refuses the module (Key was rejected by service)"
    )
    if key == PENDING:
        return f"Secure Boot is on, and the key {path} waits for its enrolment: {steps}"
    if key == MISSING:
        ask = f"set nvidia_driver_mok_password, or run mokutil --import {path}, which asks for a new password"
        return f"Secure Boot is on, but the key {path} is not enrolled: {ask}; {steps}"
    return f"Secure Boot is on, and it is not known whether the key {path} is enrolled: run mokutil --test-key {path}"


def _variable(root: Path, name: str, vendor: str) -> bool | None:
    """The value of a variable of one byte; None if it cannot be read."""
    data = sysfs.read_bytes(root / VARIABLES / f"{name}-{vendor}")
    return None if data is None or len(data) != ATTRIBUTES + 1 else data[ATTRIBUTES] == 1
