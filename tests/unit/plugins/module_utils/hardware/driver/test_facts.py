# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a driver, from the node's files and programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import secure_boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader

from ....driver_node import NEXT, RUNNING, driver_node, facts_of

MOKUTIL = f"env EFIVARFS_PATH={{}}/{secure_boot.VARIABLES}/ mokutil"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return driver_node(tmp_path)


def test_the_facts_of_a_node_with_a_driver_come_from_its_files_and_programs(root: Path) -> None:
    found = facts_of(root)
    assert found["debian"] == 12
    assert found["packages"] == {"nvidia-open-kernel-dkms": "535.8.01-1", "linux-image-amd64": "6.1.77-1"}
    assert [(kernel["release"], kernel["ready"]) for kernel in found["kernels"]] == [(RUNNING, True), (NEXT, False)]
    assert found["loaded"] == {"version": "535.7.01", "flavor": None}
    assert found["on_disk"] == {"version": "535.8.01", "flavor": "open"}
    assert "535.7.01" in found["difference"]
    assert found["held_by"] == ["python3 (pid 7)"]
    assert found["secure_boot"]["key"] == "missing"
    assert "mokutil --import" in found["secure_boot"]["problem"]
    assert [module["name"] for module in found["dkms"]] == ["nvidia-current-open"]
    signatures = [kernel["signature"] for kernel in found["kernels"]]
    assert signatures == [{"signer": "Site key", "key": "0A7F"}, None]
    assert found["runfile"] is found["secure_boot"]["serial"] is None


def test_an_initial_ram_disk_older_than_the_blacklist_is_outdated(root: Path) -> None:
    """An interrupted run leaves such an initial RAM disk. A newer one is not outdated."""

    def outdated() -> list[bool]:
        return [kernel["outdated_initrd"] for kernel in facts_of(root)["kernels"]]

    for release in (RUNNING, NEXT):
        (root / f"boot/initrd.img-{release}").touch()
        os.utime(root / f"boot/initrd.img-{release}", (7, 7))
    assert outdated() == [False, False], "there is no blacklist yet"
    (root / "etc/modprobe.d").mkdir()
    (root / "etc/modprobe.d/inference-nouveau.conf").write_text("blacklist nouveau\n")
    os.utime(root / "etc/modprobe.d/inference-nouveau.conf", (5, 5))
    assert outdated() == [True, True], "the mtime of the blacklist does not count"
    os.utime(root / f"boot/initrd.img-{RUNNING}", (2**32, 2**32))
    assert outdated() == [False, True]
    (root / f"boot/initrd.img-{NEXT}").unlink()
    assert outdated() == [False, False]


def test_a_driver_of_the_installer_is_recognised(root: Path) -> None:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/nvidia-uninstall").touch()
    assert facts_of(root)["runfile"] == {"version": None, "flavor": None, "registered": False}
    (root / "var/lib/nvidia").mkdir(parents=True)
    (root / "var/lib/nvidia/log").write_text("580.7.01\nNVIDIA driver\n")
    assert facts_of(root)["runfile"]["version"] == "580.7.01"


def test_the_files_of_the_firmware_may_have_their_own_root(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """mokutil gets the root of the firmware's files in its environment."""
    asked: list[str] = []

    def note(command: Sequence[str], timeout: float) -> Outcome:
        asked.append(" ".join(command))
        return Outcome(0)

    firmware = tmp_path_factory.mktemp("firmware")
    assert Reader(root, note, 7, firmware).facts(RUNNING)["secure_boot"]["efi"] is False
    assert f"{MOKUTIL.format(firmware)} --sb-state" in asked
    assert Reader(root, note, 7, root).facts(RUNNING)["secure_boot"]["efi"] is True
    assert asked[-1] == "mokutil --sb-state"


def test_a_bare_machine_has_empty_facts_and_no_warnings(tmp_path: Path) -> None:
    reader = Reader(tmp_path, lambda command, timeout: Outcome(None, failure="not_installed"), 7)
    found = reader.facts(RUNNING)
    assert reader.warnings == []
    assert found["debian"] is None
    assert found["loaded"] is found["on_disk"] is found["difference"] is None
    assert found["kernels"] == found["dkms"] == found["held_by"] == []
    assert found["secure_boot"]["enabled"] is False


def test_a_program_that_hangs_is_a_warning(tmp_path: Path) -> None:
    message = "dkms did not end within 7 s"
    reader = Reader(tmp_path, lambda command, timeout: Outcome(None, failure="timeout", message=message), 7)
    reader.facts(RUNNING)
    assert message in reader.warnings
