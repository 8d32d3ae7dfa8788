# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands and files of a node's disks: outputs and errors of the tools."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disk_host
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disk_host import IMMUTABLE, SET_FLAGS, Host
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Disk, DiskError, Share


class Tools:
    """Replaces subprocess.run: returns a result or raises an error, and records the calls."""

    def __init__(self) -> None:
        self.result = (0, "", "")
        self.errors: list[Exception] = []
        self.calls: list[tuple[str, ...]] = []
        self.options: dict[str, Any] = {}

    def __call__(self, command: tuple[str, ...], **options: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        self.options = options
        for error in self.errors:
            raise error
        return subprocess.CompletedProcess(command, *self.result)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools()
    monkeypatch.setattr(subprocess, "run", tools)
    return tools


def test_only_the_output_of_a_failed_command_includes_stderr(tools: Tools) -> None:
    tools.result = (0, "sda\n", "a warning")
    assert Host().ask("lsblk") == (0, "sda\n")
    tools.result = (32, "out ", "no such device")
    assert Host().ask("lsblk") == (32, "out no such device")


def test_a_command_has_no_stdin_and_the_locale_c(tools: Tools) -> None:
    Host().ask("mkfs.ext4", "/dev/sda", timeout=7)
    assert tools.options["stdin"] == subprocess.DEVNULL and tools.options["timeout"] == 7
    assert tools.options["env"] == {"PATH": disk_host.BIN, "LC_ALL": "C.UTF-8"}


def test_a_command_that_hangs_or_is_not_installed_has_an_exit_code(tools: Tools) -> None:
    tools.errors = [subprocess.TimeoutExpired("mount", 5)]
    assert Host().ask("mount", timeout=5) == (124, "mount did not end within 5 s")
    tools.errors = [FileNotFoundError()]
    assert Host().ask("mdadm", "--examine") == (127, "mdadm is not installed")


def test_a_failed_command_is_an_error_with_its_output(tools: Tools) -> None:
    Host().do("mount", "/mnt")
    tools.result = (32, "", "mount: /mnt: wrong fs type\n")
    with pytest.raises(DiskError, match=r"^mount /mnt failed \(32\): mount: /mnt: wrong fs type$"):
        Host().do("mount", "/mnt")


def test_missing_has_the_packages_of_tools_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"mkfs.xfs"}
    monkeypatch.setattr(disk_host.shutil, "which", lambda name, path: f"/sbin/{name}" if name in there else None)
    xfs = Disk("store", ("/dev/a",), "/mnt/models", filesystem="xfs")
    array = Disk("fast", ("/dev/b", "/dev/c"), "/mnt/fast", join="raid0")
    host, share = Host(), Share("nas:/x", "/x")
    assert host.has("mkfs.xfs") and not host.has("mdadm")
    assert host.missing([xfs], []) == []
    assert host.missing([xfs, array], []) == ["e2fsprogs", "mdadm"]
    assert host.missing([xfs], [share]) == ["nfs-common"]
    there.add("mount.nfs")
    assert host.missing([xfs], [share]) == []


def test_volume_groups_are_read_by_device_number(tools: Tools) -> None:
    volumes = [{"pv_name": "/dev/null", "vg_name": "inf-fast"}, {"pv_name": "[unknown]", "vg_name": "inf-fast"}]
    tools.result = (0, json.dumps({"report": [{"pv": volumes}]}), "")
    assert Host().groups() == {"1:3": "inf-fast"}
    tools.result = (5, "", "no permission\n")
    with pytest.raises(DiskError, match=r"^pvs failed \(5\): no permission$"):
        Host().groups()


def test_each_logical_volume_is_read_as_active_or_not(tools: Tools) -> None:
    volumes = [{"lv_name": "data", "lv_active": "active"}, {"lv_name": "old", "lv_active": ""}]
    tools.result = (0, json.dumps({"report": [{"lv": volumes}]}), "")
    assert Host().volumes("inf-fast") == {"data": True, "old": False}
    assert tools.calls[-1][-1] == "inf-fast"
    tools.result = (5, "", "not found\n")
    with pytest.raises(DiskError, match=r"^lvs inf-fast failed \(5\): not found$"):
        Host().volumes("inf-fast")


def test_a_server_that_does_not_answer_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        def close(self) -> None:
            closed.append("nas")

    def connect(where: tuple[str, int], seconds: float) -> Connection:
        if where != ("nas", 2049):
            raise TimeoutError("timed out")
        assert seconds == disk_host.CONNECT_SECONDS
        return Connection()

    closed: list[str] = []
    monkeypatch.setattr(disk_host.socket, "create_connection", connect)
    assert Host().connect("nas", 2049) == "" and closed == ["nas"]
    assert Host().connect("nas", 111) == "timed out"


def test_udev_that_does_not_settle_is_no_error(tools: Tools) -> None:
    tools.result = (1, "", "timeout")
    Host().settle()
    assert tools.calls == [("udevadm", "settle", "--timeout=30")]


def test_systemd_reads_a_new_fstab_at_once(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_host, "FSTAB", tmp_path / "fstab")
    assert Host().fstab() == ""
    Host().write_fstab("UUID=a / ext4\n")
    assert Host().fstab() == "UUID=a / ext4\n"
    assert tools.calls == [("systemctl", "daemon-reload")]
    tools.result = (1, "", "no bus")
    with pytest.raises(DiskError, match="no bus"):
        Host().write_fstab("UUID=b / ext4\n")


class Flags:
    """Replaces ioctl: reads and sets the flags of a directory."""

    def __init__(self, value: int, error: OSError | None = None) -> None:
        self.value = value
        self.errors = [error] if error else []

    def __call__(self, _handle: int, request: int, argument: bytes) -> bytes:
        for error in self.errors:
            raise error
        if request == SET_FLAGS:
            self.value = struct.unpack("l", argument)[0]
        return struct.pack("l", self.value)


def test_a_protected_mount_point_keeps_its_other_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = Flags(0x80000)
    monkeypatch.setattr(disk_host.fcntl, "ioctl", flags)
    assert not Host().immutable(tmp_path)
    Host().protect(tmp_path)
    assert flags.value == 0x80000 | IMMUTABLE and Host().immutable(tmp_path)


def test_a_file_system_without_flags_cannot_protect_a_mount_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(disk_host.fcntl, "ioctl", Flags(IMMUTABLE, OSError("Inappropriate ioctl for device")))
    Host().protect(tmp_path)
    assert not Host().immutable(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_device_number_is_major_and_minor() -> None:
    assert disk_host.number("/dev/null") == "1:3"
