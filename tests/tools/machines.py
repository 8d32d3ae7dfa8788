# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines, which have their own kernel, boot loader, disks and watchdog, unlike containers.

Each machine is a qemu process with a directory for the machine's key, disks, console log and inventory.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")
DISK = CACHE / "machine/disk.qcow2"
"""Made by images/build machine."""

BOOT_SECONDS = 600
"""Limit in seconds. An emulated machine boots in 40 s on two idle cores."""
STOP_SECONDS = 20
DISK_MIB = 512
"""Size of each further disk in MiB. mkfs.xfs refuses less than 300."""
SERIALS = ("blank1", "blank2", "blank3", "blank4", "ext4", "lvm", "md", "parted", "swap", "noise")
"""The serial numbers of the further disks, which are empty at first. In the machine: /dev/disk/by-id/virtio-SERIAL."""


class MachineError(Exception):
    """A machine that does not start or answer; the message says what to look at."""


def accelerator() -> str:
    """kvm if it works, else tcg (emulation). The function tries kvm: qemu may fail although /dev/kvm exists."""
    argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "max", "-nodefaults", "-display", "none", "-S"]
    try:
        tried = subprocess.run(
            [*argv, "-monitor", "stdio"], input="quit\n", text=True, capture_output=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        return "tcg"
    return "kvm" if tried.returncode == 0 else "tcg"


def free_port() -> int:
    """A free TCP port of the loopback interface."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def arguments(directory: Path, accel: str, port: int, public_key: str, serials: Sequence[str]) -> list[str]:
    """The command line of qemu for a machine. `port` of this machine leads to the machine's SSH."""
    # systemd puts this into root's authorized_keys when it boots for the first time.
    key = base64.b64encode(public_key.encode()).decode()
    devices = []
    for serial in serials:
        drive = f"if=none,id={serial},format=raw,cache=unsafe,discard=unmap,file={directory}/{serial}.raw"
        devices += ["-drive", drive, "-device", f"virtio-blk-pci,drive={serial},serial={serial}"]
    # The emulation of the oldest processor is faster by a fifth: on newer processors, programs use wide vectors, whose
    # emulation is slow.
    cpu = "max" if accel == "kvm" else "qemu64"
    return [
        *("qemu-system-x86_64", "-name", directory.name, "-accel", accel, "-cpu", cpu, "-smp", "2", "-m", "2048"),
        *("-machine", "q35"),
        *("-nodefaults", "-vga", "none", "-display", "none", "-serial", f"file:{directory}/console.log"),
        *("-daemonize", "-pidfile", f"{directory}/qemu.pid", "-qmp", f"unix:{directory}/qmp,server=on,wait=off"),
        *("-drive", f"if=none,id=root,format=qcow2,cache=unsafe,file={directory}/disk.qcow2"),
        *("-device", "virtio-blk-pci,drive=root,bootindex=0"),
        # The NIC is below a bridge with Access Control Services (ACS), as on a server.
        *("-device", "pcie-root-port,id=above,chassis=1", "-device", "virtio-net-pci,netdev=net,bus=above"),
        *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-rng-pci", "-device", "i6300esb", "-action", "watchdog=reset"),
        *("-smbios", f"type=11,value=io.systemd.credential.binary:ssh.authorized_keys.root={key}"),
        *devices,
    ]


class Machine:
    """A machine and its directory."""

    def __init__(self, directory: Path, name: str = "") -> None:
        self.directory = directory
        self.name = name or directory.name
        self.key = directory / "id_ed25519"
        self.known_hosts = directory / "known_hosts"
        self.console = directory / "console.log"

    @property
    def port(self) -> int:
        """The port of this machine's SSH on the loopback interface. Raises MachineError."""
        try:
            return int((self.directory / "port").read_text())
        except FileNotFoundError:
            raise MachineError(f"{self.name} was never started: {self.directory} holds no machine") from None

    def pid(self) -> int:
        """The process id of the machine's qemu; 0 if none runs."""
        try:
            pid = int((self.directory / "qemu.pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return 0
        # Another process may have this process id now.
        return pid if f"{self.directory}/qemu.pid".encode() in command else 0

    # --- start and stop

    def up(self) -> None:
        """Start the machine with fresh disks, unless it runs, and wait until it has booted. Raises MachineError."""
        if not self.pid():
            if not DISK.exists():
                raise MachineError(f"{DISK} is not there. Run: make setup")
            self._make_files()
            self.start()
        self.wait()

    def _make_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A fresh disk has a new host key.
        for path in (self.known_hosts, self.console):
            path.unlink(missing_ok=True)
        if not self.key.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(self.key))
        self.make_disk(DISK.resolve())
        for serial in SERIALS:
            with (self.directory / f"{serial}.raw").open("wb") as stream:
                stream.truncate(DISK_MIB << 20)

    def make_disk(self, base: Path) -> None:
        """Make the root disk, which has what another disk has and keeps its own changes. Raises MachineError."""
        run(
            *("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base)),
            str(self.directory / "disk.qcow2"),
        )

    def start(self, *options: str) -> None:
        """Start qemu, with additional options. Raises MachineError."""
        public_key = self.key.with_suffix(".pub").read_text()
        # Another process may take the port after free_port and before qemu.
        for attempts_left in (2, 1, 0):
            port = free_port()
            try:
                run(*arguments(self.directory, accelerator(), port, public_key, SERIALS), *options)
                break
            except MachineError as error:
                if "host forwarding" not in str(error) or not attempts_left:
                    raise
        (self.directory / "port").write_text(f"{port}\n")

    def wait(self, boot: str = "") -> None:
        """Wait until the machine has booted; `boot`: the id of the boot before a reboot. Raises MachineError."""
        deadline = time.monotonic() + BOOT_SECONDS
        said = ""
        while time.monotonic() < deadline:
            if not self.pid():
                raise MachineError(f"{self.name}: qemu has ended. {self._last_words()}")
            result = self.ssh("cat /proc/sys/kernel/random/boot_id; systemctl is-system-running --wait", check=False)
            said = result.stdout.strip() or result.stderr.strip()
            now, _, state = said.partition("\n")
            if state in ("running", "degraded") and now != boot:
                return
            time.sleep(1)
        raise MachineError(f"{self.name} has not booted after {BOOT_SECONDS} s ({said}). {self._last_words()}")

    def reboot(self) -> None:
        """Reboot, and wait until the machine has booted again. Raises MachineError."""
        boot = self.ssh("cat /proc/sys/kernel/random/boot_id").stdout.strip()
        # With a delay of a second: from a machine that shuts down at once, ssh would wait long for the answer.
        self.ssh("systemd-run --quiet --on-active=1s --timer-property=AccuracySec=100ms systemctl reboot")
        self.disconnect()
        self.wait(boot)

    def disconnect(self) -> None:
        """Close the connection that ssh keeps open."""
        run("ssh", *self.ssh_options(), "-O", "exit", "root@127.0.0.1", check=False)

    def down(self) -> None:
        """Switch the machine off and remove its disks. The console log stays. Raises MachineError."""
        pid = self.pid()
        if pid:
            self.disconnect()
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while self.pid():
                if time.monotonic() > deadline:
                    raise MachineError(f"qemu (process {pid}) of {self.name} does not end. Run: kill -9 {pid}")
                time.sleep(0.1)
        for path in (*self.directory.glob("*.raw"), self.directory / "disk.qcow2", self.directory / "qemu.pid"):
            path.unlink(missing_ok=True)

    def _last_words(self) -> str:
        try:
            lines = self.console.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return f"The end of {self.console}:\n" + "\n".join(lines[-20:])

    # --- SSH

    def ssh_options(self) -> list[str]:
        """The options with which ssh reaches the machine as root, without the port."""
        # Only this computer reaches the port, so the first host key is the machine's. A connection's limit includes
        # sshd's banner: on a busy computer, an emulated sshd takes long, and each new attempt takes time from the last.
        options = ["BatchMode=yes", "ConnectTimeout=60", "StrictHostKeyChecking=accept-new"]
        # When a machine goes down, the emulator keeps its connections open for minutes.
        options += ["ServerAliveInterval=5", "ServerAliveCountMax=4"]
        # With an emulated processor, a new connection takes two seconds.
        options += ["ControlMaster=auto", "ControlPersist=120", f"ControlPath={self.directory}/ssh"]
        return [
            *("-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}"),
            *(word for option in options for word in ("-o", option)),
        ]

    def ssh_command(self) -> list[str]:
        """The ssh command line before the remote command."""
        return ["ssh", *self.ssh_options(), "-p", str(self.port), "root@127.0.0.1"]

    def ssh(self, command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the machine. Raises MachineError if the command fails and check is set."""
        return run(*self.ssh_command(), command, check=check)

    def write_inventory(self, path: Path) -> None:
        """Write a hosts file with this machine in the group inference."""
        variables = {
            "ansible_connection": "ssh",
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts}",
        }
        # JSON is YAML.
        path.write_text(json.dumps({"inference": {"hosts": {self.name: variables}}}, indent=2) + "\n")


def run(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command. Raises MachineError with the command's error output if it fails and check is set."""
    result = subprocess.run(argv, text=True, capture_output=True, errors="replace", stdin=subprocess.DEVNULL)
    if check and result.returncode != 0:
        raise MachineError(f"{' '.join(argv)}: {result.stderr.strip() or result.stdout.strip()}")
    return result
