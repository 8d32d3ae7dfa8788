# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads facts of block devices and mounts from the kernel and libblkid. Changes nothing. Private to the collection."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .disks import Device, DiskError, Signature
from .fstab import decode

Run = Callable[..., tuple[int, str]]
"""Runs a command. Returns the exit code and the output; if the command failed, with its errors."""

HEAD = 4 << 20
"""Bytes at the beginning of a device that must be empty: file systems, key slots and partitions start there."""

ERASED = (0x00, 0xFF)
"""The bytes that can fill a new, wiped or discarded device. All bytes of the device are then equal."""

BLKID_NOTHING = 2
BLKID_SEVERAL = 8
"""Exit codes of ``blkid --probe`` besides 0. Source: blkid(8)."""

NO_DISK = re.compile(r"^(dm|md|lvm)-|-part[0-9]+$")
"""Names below /dev/disk/by-id that are not names of whole disks."""

LOCK_SECONDS = 60
SHOWN = 12
"""How many devices an error names at most."""


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo."""

    number: str
    root: str
    path: str
    kind: str
    source: str


def read_mounts(proc: Path, process: str = "self") -> list[Mount]:
    """All mounts of a process, in the order of mounting. Never accesses a file system, which may hang."""
    found = []
    for line in (proc / process / "mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        # A dash ends the optional fields. Source: proc(5).
        kind, source = words[words.index("-", 6) + 1 :][:2]
        found.append(Mount(words[2], decode(words[3]), decode(words[4]), kind, decode(source)))
    return found


class BlockDevices:
    """The block devices of this node. Tests use other roots."""

    def __init__(
        self, run: Run, sys: Path = Path("/sys"), proc: Path = Path("/proc"), dev: Path = Path("/dev")
    ) -> None:
        self.run = run
        self.sys = sys
        self.proc = proc
        self.dev = dev

    # --- mounts

    def mounts(self) -> list[Mount]:
        """All mounts, in the order of mounting. Never accesses a file system, which may hang."""
        return read_mounts(self.proc)

    def mounted_at(self, path: str) -> Mount | None:
        """The last mount at exactly this mount point; None if nothing is mounted there."""
        return next((mount for mount in reversed(self.mounts()) if mount.path == path), None)

    def swaps(self) -> set[str]:
        """The numbers of the devices in use as swap."""
        lines = (self.proc / "swaps").read_text(encoding="utf-8", errors="replace").splitlines()[1:]
        numbers = set()
        for line in lines:
            # A swap file may already be deleted. For a device in use as swap, _open also reports that it is busy.
            with suppress(FileNotFoundError):
                status = Path(decode(line.split()[0])).stat()
                if stat.S_ISBLK(status.st_mode):
                    numbers.add(_number(status.st_rdev))
        return numbers

    # --- devices

    def device(self, path: str) -> Device:
        """The facts that decide whether a device is blank. Raises DiskError if the path is not a block device."""
        try:
            status = os.stat(path)
        except FileNotFoundError:
            raise DiskError(f"{path} does not exist. {self.known()}") from None
        if not stat.S_ISBLK(status.st_mode):
            raise DiskError(f"{path} is not a block device")
        number = _number(status.st_rdev)
        entry = (self.sys / "dev/block" / number).resolve()
        size = int(self._read(entry / "size") or 0) * 512
        busy, empty, doubts = self._open(path, size)
        signatures, more = self._signatures(path)
        return Device(
            path=path,
            kernel=entry.name,
            number=number,
            size=size,
            model=self._read(self._whole(entry) / "device/model"),
            signatures=signatures,
            partitions=tuple(sorted(child.parent.name for child in entry.glob("*/partition"))),
            holders=self.holders(entry),
            mounts=tuple(mount.path for mount in self.mounts() if mount.number == number),
            swap=number in self.swaps(),
            read_only=self._read(entry / "ro") != "0",
            busy=busy,
            empty=empty,
            doubts=(*doubts, *more),
        )

    def holders(self, entry: Path) -> tuple[str, ...]:
        """The names of the devices, such as those of LVM or md, that use this device."""
        directory = entry / "holders"
        return tuple(sorted(path.name for path in directory.iterdir())) if directory.is_dir() else ()

    def array(self, kernel: str) -> tuple[str, str, int]:
        """Level, state and number of members of an md array. Empty and 0 for any other device."""
        entry = self.sys / "class/block" / kernel / "md"
        members = self._read(entry / "raid_disks")
        return self._read(entry / "level"), self._read(entry / "array_state"), int(members) if members.isdigit() else 0

    def known(self) -> str:
        """A sentence for an error: the names of the node's whole disks."""
        directory = self.dev / "disk/by-id"
        paths = sorted(directory.iterdir()) if directory.is_dir() else []
        names = [path.name for path in paths if not NO_DISK.search(path.name)]
        shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
        return f"Found in {directory}: {shown or 'nothing'}"

    @contextmanager
    def locked(self, devices: list[Device]) -> Iterator[None]:
        """Lock whole disks against udev and other programs that respect udev's locks. Raises DiskError.

        Source: systemd's "Locking Block Device Access". These locks do not stop programs that ignore them.
        """
        whole = sorted({self._whole((self.sys / "dev/block" / device.number).resolve()).name for device in devices})
        handles = []
        try:
            for name in whole:
                handles.append(os.open(self.dev / name, os.O_RDONLY | os.O_CLOEXEC))
                _lock(handles[-1], str(self.dev / name))
            yield
        finally:
            for handle in handles:
                os.close(handle)

    def _whole(self, entry: Path) -> Path:
        """The disk of a partition; for any other device, the device itself."""
        return entry.parent if (entry / "partition").exists() else entry

    def _open(self, path: str, size: int) -> tuple[bool, bool, list[str]]:
        """Whether the device is in exclusive use, whether its head is empty, and what could not be read."""
        busy = False
        try:
            try:
                handle = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                busy = True
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            return busy, True, [f"the device cannot be opened: {error.strerror}"]
        try:
            head = os.pread(handle, HEAD, 0)
            tail = os.pread(handle, 512, max(size - 512, 0))
        except OSError as error:
            return busy, True, [f"the device cannot be read: {error.strerror}"]
        finally:
            os.close(handle)
        whole = len(head) == min(HEAD, size) and len(tail) == min(512, size)
        doubts = [] if whole else ["reads end before the size that the kernel reports"]
        return busy, not head or (head[0] in ERASED and not head.strip(head[:1])), doubts

    def _signatures(self, path: str) -> tuple[tuple[Signature, ...], list[str]]:
        """The signatures that wipefs and blkid find, and texts on what they could not read."""
        doubts = []
        code, output = self.run("wipefs", "--no-act", "--json", path)
        found: list[dict[str, Any]] = []
        try:
            found = json.loads(output or "{}").get("signatures", []) if code == 0 else []
        except ValueError:
            code = 1
        if code:
            doubts.append(f"wipefs cannot read the signatures ({code}): {output.strip()}")
        # wipefs lists a signature with copies, such as GPT, once for each copy.
        signatures = list(
            dict.fromkeys(Signature(item["type"], item.get("label") or "", item.get("uuid") or "") for item in found)
        )
        code, output = self.run("blkid", "--probe", "--output", "export", path)
        values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line) if code == 0 else {}
        kind = values.get("TYPE") or values.get("PTTYPE")
        if code == BLKID_SEVERAL:
            doubts.append("blkid finds more than one kind of content")
        elif code not in (0, BLKID_NOTHING):
            doubts.append(f"blkid cannot read the signatures ({code}): {output.strip()}")
        elif kind and kind not in {signature.kind for signature in signatures}:
            signatures.append(Signature(kind, values.get("LABEL", ""), values.get("UUID", "")))
        return tuple(signatures), doubts

    @staticmethod
    def _read(path: Path) -> str:
        """A value of sysfs; empty if it cannot be read."""
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""


def _lock(handle: int, name: str) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise DiskError(
                    f"{name} has been locked by another program for more than {LOCK_SECONDS} s. Find the program with: "
                    f"lsof {name}"
                ) from None
            time.sleep(0.2)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
