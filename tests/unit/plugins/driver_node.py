# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with a driver for tests: its files, and what its programs answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader

RUNNING, NEXT = "6.1.0-70-amd64", "6.1.0-77-amd64"

OUTPUTS = {
    "dkms status": f"nvidia-current-open/535.8.01, {RUNNING}, x86_64: installed\nzfs/2.7: added\n",
    "dpkg-query": (
        "hold half-configured nvidia-open-kernel-dkms 535.8.01-1\ndeinstall config-files nvidia-kernel-dkms 535.7-1\n"
        "install installed linux-image-amd64 6.1.77-1\ninstall installed bash 5.2-7\n"
    ),
    f"modinfo -k {RUNNING} nvidia-current-open": (
        "license: Dual MIT/GPL\nversion: 535.8.01\nsig_id: PKCS#7\nsigner: Site key\nsig_key: 0A:7F\n"
    ),
    "mokutil --sb-state": "SecureBoot enabled\n",
    "mokutil --test-key /var/lib/dkms/mok.pub": "/var/lib/dkms/mok.pub is not enrolled\n",
}


def answer(command: Sequence[str], timeout: float) -> Outcome:
    words = " ".join(command)
    output = next((output for start, output in OUTPUTS.items() if words.startswith(start)), None)
    if output is None:
        return Outcome(None, failure="not_installed", message=f"{command[0]} is not installed")
    return Outcome(0, output)


def answer_with_stdin(command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
    return answer(command, timeout)


def driver_node(tmp_path: Path) -> Path:
    """A node whose loaded driver is older than the installed driver, and whose next kernel has no driver."""
    for directory in ("boot", "etc", "sys/firmware/efi/efivars", "sys/module/nvidia/holders", "proc/7/fd", "dev"):
        (tmp_path / directory).mkdir(parents=True)
    for release in (RUNNING, NEXT):
        (tmp_path / f"boot/vmlinuz-{release}").touch()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="x"\nID=debian\nVERSION_ID="12"\n')
    (tmp_path / "sys/module/nvidia/version").write_text("535.7.01\n")
    (tmp_path / "proc/7/comm").write_text("python3\n")
    (tmp_path / "proc/7/fd/7").symlink_to("/dev/nvidia0")
    return tmp_path


def facts_of(root: Path) -> dict[str, Any]:
    reader = Reader(root, answer, 7)
    found = reader.facts(RUNNING)
    assert reader.warnings == []
    return found


def same_keys(documented: dict[str, Any], found: dict[str, Any]) -> None:
    """Every key is documented, and every documented key is found, in nested parts, too."""
    assert set(documented) == set(found)
    for key, value in found.items():
        inner = value[0] if isinstance(value, list) and value else value
        if "contains" in documented[key] and isinstance(inner, dict):
            same_keys(documented[key]["contains"], inner)
