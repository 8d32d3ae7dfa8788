# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the firmware lets only signed modules in, and whether it knows the key that DKMS signs with. Private to the
collection."""

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
"""The key that DKMS makes and signs with, and its public half, unless framework.conf names others. Source: prepare_mok
of /usr/sbin/dkms."""

ENROLLED, PENDING, MISSING = "enrolled", "pending", "missing"
"""How it stands with a key. Pending: the next boot asks on the console whether to enrol it."""

SETTING = re.compile(r"^\s*(mok_certificate|mok_signing_key)=[\"']?([^\"'\s#]+)", re.MULTILINE)


@dataclass(frozen=True)
class SecureBoot:
    """What the firmware does; None where it does not tell."""

    efi: bool
    """False for a machine that was started by a BIOS, where there is no Secure Boot."""
    enabled: bool | None
    """Whether unsigned modules are refused."""
    setup_mode: bool | None
    """Whether the firmware has no owner's key yet, and therefore enforces nothing."""


def state(root: Path, mokutil: str = "") -> SecureBoot:
    """Secure Boot by the firmware's variables, and where those cannot be read by what ``mokutil --sb-state`` prints."""
    if not (root / EFI).is_dir():
        return SecureBoot(efi=False, enabled=False, setup_mode=None)
    enabled, setup_mode = _variable(root, "SecureBoot", GLOBAL), _variable(root, "SetupMode", GLOBAL)
    # shim may be told to validate nothing, by mokutil --disable-validation; the firmware still says enabled.
    ignored = _variable(root, "MokSBStateRT", SHIM)
    if enabled is None:
        enabled = parse_state(mokutil)
    return SecureBoot(True, False if ignored else enabled, setup_mode)


def parse_state(output: str) -> bool | None:
    """What ``mokutil --sb-state`` says; None where it cannot tell."""
    if re.search(r"validation is disabled in shim", output, re.IGNORECASE):
        return False
    match = re.search(r"^\s*SecureBoot\s+(enabled|disabled)\b", output, re.IGNORECASE | re.MULTILINE)
    return None if match is None else match[1].lower() == "enabled"


def parse_key(output: str) -> str | None:
    """ENROLLED, PENDING or MISSING, of what ``mokutil --test-key`` prints; None where it cannot tell.

    Its exit status differs between versions.
    """
    if re.search(r"already in the enrollment request", output, re.IGNORECASE):
        return PENDING
    if re.search(r"is not enrolled", output, re.IGNORECASE):
        return MISSING
    if re.search(r"is already (?:enrolled|in (?:the )?(?:db|MokList))|is enrolled", output, re.IGNORECASE):
        return ENROLLED
    return None


def certificate(configuration: str) -> str:
    """The public key that DKMS signs with, of its configuration files, joined in their order: the last one wins."""
    return dict(SETTING.findall(configuration)).get("mok_certificate", CERTIFICATE)


def signing_key(configuration: str) -> str:
    """The key itself, likewise."""
    return dict(SETTING.findall(configuration)).get("mok_signing_key", KEY)


def problem(boot: SecureBoot, key: str | None, path: str) -> str | None:
    """Why the kernel would refuse the driver's module, and what a person has to do about it.

    None where it would not, or where nothing is known of Secure Boot.
    """
    if not boot.enabled or boot.setup_mode or key == ENROLLED:
        return None
    steps = (
        "at the next boot, on the machine's own console or its BMC's, choose Enroll MOK, Continue, Yes, and type the "
        "password of the request (nvidia_driver_mok_password, where the role made it), on a keyboard with the layout "
        "of the United States. Without that the kernel refuses the module (Key was rejected by service)"
    )
    if key == PENDING:
        return f"Secure Boot is on, and the key {path} waits to be enrolled: {steps}"
    if key == MISSING:
        ask = f"set nvidia_driver_mok_password, or run mokutil --import {path}, which asks for a new password"
        return f"Secure Boot is on, and the firmware does not know the key {path}: {ask}; {steps}"
    return (
        f"Secure Boot is on, and it is not known whether the firmware has the key {path}: run mokutil --test-key {path}"
    )


def _variable(root: Path, name: str, vendor: str) -> bool | None:
    """A variable of one byte that is a yes or no."""
    data = sysfs.read_bytes(root / VARIABLES / f"{name}-{vendor}")
    return None if data is None or len(data) != ATTRIBUTES + 1 else data[ATTRIBUTES] == 1
