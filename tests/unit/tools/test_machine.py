# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual machine's boot sectors, and the life of its process."""

from __future__ import annotations

import base64
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import machines
import pytest
from parts import machine as image
from parts.tools import BuildError


def test_the_first_sector_holds_the_boot_code_and_one_active_partition() -> None:
    written = image.boot_loader(b"\xeb" * 512, b"CORE" * 1000)
    assert written[:440] == b"\xeb" * 440
    assert written[510:512] == b"\x55\xaa"
    status, kind, first, sectors = struct.unpack("<B3xB3xII", written[446:462])
    assert (status, kind, first) == (0x80, 0x83, 2048)
    assert (first + sectors) * 512 == image.GIB << 30
    assert not any(written[462:510])
    # GRUB's boot.img reads the core image from here.
    assert written[512:] == b"CORE" * 1000


def test_a_boot_loader_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BuildError, match="1048065 bytes"):
        image.boot_loader(bytes(512), bytes(1048065))
    assert len(image.boot_loader(bytes(512), bytes(1048064))) == 1048576


def test_the_key_reaches_root_as_a_credential_of_systemd(tmp_path: Path) -> None:
    words = machines.arguments(tmp_path, "tcg", 2222, "ssh-ed25519 AAAA me\n", ["one", "two"])
    credential = next(word for word in words if word.startswith("type=11,value="))
    name, _, value = credential.removeprefix("type=11,value=io.systemd.credential.binary:").partition("=")
    assert name == "ssh.authorized_keys.root"
    assert base64.b64decode(value) == b"ssh-ed25519 AAAA me\n"


def test_every_disk_has_its_serial_and_the_root_disk_boots(tmp_path: Path) -> None:
    words = machines.arguments(tmp_path, "tcg", 2222, "key", ["one", "two"])
    disks = [word for word in words if word.startswith("virtio-blk-pci,")]
    assert disks[0].endswith("drive=root,bootindex=0")
    assert [disk.partition("serial=")[2] for disk in disks[1:]] == ["one", "two"]
    assert f"file={tmp_path}/two.raw" in " ".join(words)
    assert "hostfwd=tcp:127.0.0.1:2222-:22" in " ".join(words)


def test_the_nic_is_below_a_bridge_of_pcie(tmp_path: Path) -> None:
    """The bridge has Access Control Services, which the role rdma switches off."""
    words = machines.arguments(tmp_path, "tcg", 2222, "key", [])
    assert words[words.index("-machine") + 1] == "q35"
    bridge = next(word for word in words if word.startswith("pcie-root-port,"))
    nic = next(word for word in words if word.startswith("virtio-net-pci,"))
    assert "id=above" in bridge and "bus=above" in nic


def qemu(directory: Path, script: str) -> None:
    """A program that stands in for qemu."""
    path = directory / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(("script", "expected"), [("exit 0", "kvm"), ("kill -ABRT $$", "tcg"), ("exit 1", "tcg")])
def test_kvm_is_used_only_if_qemu_starts_with_kvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    qemu(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machines.accelerator() == expected


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[machines.Machine, subprocess.Popen[bytes]]]:
    """A machine whose process is another program with qemu's argument."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", "-pidfile", f"{tmp_path}/qemu.pid"]
    process = subprocess.Popen(command)
    # Popen returns as the program is replaced, a moment before the kernel shows the new one's arguments.
    while not Path(f"/proc/{process.pid}/cmdline").read_bytes().endswith(b"qemu.pid\0"):
        time.sleep(0.01)
    (tmp_path / "qemu.pid").write_text(f"{process.pid}\n")
    (tmp_path / "disk.qcow2").touch()
    (tmp_path / "console.log").touch()
    yield machines.Machine(tmp_path), process
    process.kill()
    process.wait()


def test_down_ends_the_machine_and_keeps_its_console(
    running: tuple[machines.Machine, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, process = running
    assert machine.pid() == process.pid
    kill = os.kill

    def reap(pid: int, number: int) -> None:
        kill(pid, number)
        process.wait()

    monkeypatch.setattr(machines.os, "kill", reap)
    machine.down()
    assert process.returncode == -signal.SIGTERM
    assert sorted(path.name for path in machine.directory.iterdir()) == ["console.log"]
    # Nothing is left to end.
    machine.down()


def test_a_process_that_is_not_the_machine_is_not_ended(tmp_path: Path) -> None:
    """After a restart of this machine, the recorded process id may belong to any program."""
    (tmp_path / "qemu.pid").write_text(f"{os.getpid()}\n")
    machine = machines.Machine(tmp_path)
    assert machine.pid() == 0
    machine.down()


def test_a_machine_that_was_never_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(machines.MachineError, match="never started"):
        machines.Machine(tmp_path / "ghost").ssh("true")


def test_a_machine_that_ends_while_it_boots_shows_its_console(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Loading Linux\nKernel panic - not syncing\n")
    with pytest.raises(machines.MachineError, match=r"(?s)qemu has ended.*Kernel panic"):
        machines.Machine(tmp_path).wait()


def test_a_port_that_another_process_takes_before_qemu_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = iter((1111, 2222))
    started: list[str] = []

    def run(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        started.append(" ".join(argv))
        if "127.0.0.1:1111-" in started[-1]:
            raise machines.MachineError("Could not set up host forwarding rule 'tcp:127.0.0.1:1111-:22'")
        return subprocess.CompletedProcess(argv, 0, "", "")

    (tmp_path / "id_ed25519.pub").write_text("key")
    monkeypatch.setattr(machines, "free_port", lambda: next(ports))
    monkeypatch.setattr(machines, "accelerator", lambda: "tcg")
    monkeypatch.setattr(machines, "run", run)
    machine = machines.Machine(tmp_path)
    machine.start()
    assert machine.port == 2222
    assert len(started) == 2


def test_the_inventory_leads_to_the_machine(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("2222\n")
    machines.Machine(tmp_path, "box").write_inventory(tmp_path / "hosts.json")
    host = json.loads((tmp_path / "hosts.json").read_text())["inference"]["hosts"]["box"]
    assert (host["ansible_host"], host["ansible_port"]) == ("127.0.0.1", 2222)
    assert host["ansible_ssh_private_key_file"] == f"{tmp_path}/id_ed25519"
