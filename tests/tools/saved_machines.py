# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine that has booted and has run a script, saved with its memory.

A boot of an emulated machine takes 40 s or more, and a copy of a saved machine continues in seconds. With kvm, a
boot takes seconds, and nothing is saved.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import machines
from machines import CACHE, DISK, Machine, MachineError
from nodes import alone

SAVED = CACHE / "machine/saved"
SAVE_SECONDS = 120
MEMORY = "memory"
"""The file with the machine's memory and the state of its devices."""
LAYOUT = 1
"""Raise this number after a change of the way in which a saved machine is made."""


def key(script: str) -> str:
    """The key of a saved machine: a hash of its disk, its qemu and its script."""
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    words = machines.arguments(Path(), "tcg", 0, "", machines.SERIALS)
    parts = [str(LAYOUT), str(DISK.resolve()), qemu, *words, str(machines.DISK_MIB), script]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def up(machine: Machine, script: str) -> None:
    """Start a machine, unless it runs, that has booted and has run a script as root. Raises MachineError."""
    if machine.pid():
        machine.wait()
    elif machines.accelerator() == "kvm":
        machine.up()
        machine.ssh(script)
    else:
        if not DISK.exists():
            raise MachineError(f"{DISK} is not there. Run: make setup")
        restore(machine, ensure(script))


def ensure(script: str) -> Path:
    """The directory of the saved machine. Makes a missing one, and removes others. Raises MachineError."""
    directory = SAVED / key(script)
    with alone("saved-machine"):
        if not directory.exists():
            shutil.rmtree(SAVED, ignore_errors=True)
            # The directory's name is short, because the path of a socket has at most 107 characters.
            part = Machine(SAVED / "part", "machine")
            try:
                part.up()
                part.ssh(script)
                save(part)
            except (MachineError, OSError):
                part.down()
                raise
            part.directory.rename(directory)
    return directory


def save(machine: Machine) -> None:
    """Write the machine's memory to a file, and end the machine. Its disks stay. Raises MachineError."""
    machine.ssh("sync")
    machine.disconnect()
    with Monitor(machine) as monitor:
        # This sets no real limit. By default, the limit is 128 MiB a second.
        monitor.ask("migrate-set-parameters", {"max-bandwidth": 1 << 40})
        monitor.ask("migrate", {"uri": f"exec:cat > {shlex.quote(str(machine.directory / MEMORY))}"})
        deadline = time.monotonic() + SAVE_SECONDS
        while (state := monitor.ask("query-migrate").get("status")) != "completed":
            if state == "failed" or time.monotonic() > deadline:
                raise MachineError(
                    f"{machine.name} cannot be saved: qemu says {state!r}; the limit is {SAVE_SECONDS} s"
                )
            time.sleep(0.1)
        monitor.ask("quit")
    while machine.pid():
        time.sleep(0.05)


def restore(machine: Machine, saved: Path) -> None:
    """Start a copy of a saved machine. Raises MachineError."""
    machine.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in (machine.known_hosts, machine.console):
        path.unlink(missing_ok=True)
    for path in (saved / machine.key.name, saved / f"{machine.key.name}.pub"):
        shutil.copy2(path, machine.directory)
    disks = [str(saved / f"{serial}.raw") for serial in machines.SERIALS]
    machines.run("cp", "--sparse=always", *disks, str(machine.directory))
    machine.make_disk(saved / "disk.qcow2")
    machine.start("-incoming", f"exec:cat {shlex.quote(str(saved / MEMORY))}")
    machine.wait()
    # The copy's clock continues at the time of the save.
    machine.ssh(f"date --utc --set=@{time.time():.3f} >/dev/null")


class Monitor:
    """The monitor of a machine's qemu, which takes commands in JSON."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Monitor:
        self._socket.connect(str(self._machine.directory / "qmp"))
        self._stream = self._socket.makefile("rw", encoding="utf-8")
        # qemu sends its version first.
        self._stream.readline()
        self.ask("qmp_capabilities")
        return self

    def __exit__(self, *_error: object) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, command: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command. Returns qemu's answer. Raises MachineError if qemu refuses it."""
        self._stream.write(json.dumps({"execute": command, "arguments": arguments or {}}) + "\n")
        self._stream.flush()
        for line in self._stream:
            answer = json.loads(line)
            if "error" in answer:
                raise MachineError(f"{self._machine.name}: qemu refuses {command}: {answer['error'].get('desc')}")
            # Other lines are events.
            if "return" in answer:
                return dict(answer["return"])
        raise MachineError(f"{self._machine.name}: qemu has ended without an answer to {command}")
