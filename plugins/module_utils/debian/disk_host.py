# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands and files to inspect and change a node's disks. Private to the collection."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..core import files
from . import disks as dk
from .block_devices import BlockDevices

FSTAB = Path("/etc/fstab")

BIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

QUICK = 120
"""Timeout in seconds of a query or a mount. A mount may replay the file system's journal."""

SLOW = 3600
"""Timeout in seconds of making a file system, which first discards all blocks of a drive."""

CONNECT_SECONDS = 5
"""Timeout in seconds of a connection to an NFS server."""

GET_FLAGS, SET_FLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL. Source: linux/fs.h, for 64-bit machines."""


class Host:
    """The commands and files of the node."""

    def __init__(self) -> None:
        self.blocks = BlockDevices(self.ask)

    def ask(self, *command: str, timeout: int = QUICK) -> tuple[int, str]:
        """Run a command. Returns exit code and output; the output of a failed command includes stderr."""
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                # So that no tool waits for an answer to "Proceed anyway?".
                stdin=subprocess.DEVNULL,
                timeout=timeout,
                env={"PATH": BIN, "LC_ALL": "C.UTF-8"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, f"{command[0]} did not end within {timeout} s"
        except FileNotFoundError:
            return 127, f"{command[0]} is not installed"
        return result.returncode, result.stdout + (result.stderr if result.returncode else "")

    def do(self, *command: str, timeout: int = QUICK) -> None:
        """Run a command. Raises DiskError with its output."""
        code, output = self.ask(*command, timeout=timeout)
        if code:
            raise dk.DiskError(f"{' '.join(command)} failed ({code}): {output.strip()}")

    def has(self, command: str) -> bool:
        return shutil.which(command, path=BIN) is not None

    def missing(self, disks: Sequence[dk.Disk], shares: Sequence[dk.Share]) -> list[str]:
        """The packages that these disks and shares need and that are not installed."""
        tools = {tool for disk in disks for tool in disk.tools} | ({"nfs"} if shares else set())
        wanted = [dk.PACKAGES[tool] for tool in tools]
        return sorted(package for command, package in wanted if not self.has(command))

    def groups(self) -> dict[str, str]:
        """The LVM volume group of each physical volume, by the device's MAJOR:MINOR. Raises DiskError."""
        code, output = self.ask("pvs", "--reportformat", "json", "--options", "pv_name,vg_name")
        if code:
            raise dk.DiskError(f"pvs failed ({code}): {output.strip()}")
        volumes = json.loads(output)["report"][0]["pv"]
        # A volume whose device is missing has no path.
        return {number(item["pv_name"]): item["vg_name"] for item in volumes if item["pv_name"].startswith("/dev/")}

    def volumes(self, group: str) -> dict[str, bool]:
        """The logical volumes of a group by name, each with whether it is active. Raises DiskError."""
        code, output = self.ask("lvs", "--reportformat", "json", "--options", "lv_name,lv_active", group)
        if code:
            raise dk.DiskError(f"lvs {group} failed ({code}): {output.strip()}")
        return {item["lv_name"]: item["lv_active"] == "active" for item in json.loads(output)["report"][0]["lv"]}

    def connect(self, server: str, port: int) -> str:
        """Why a server does not accept connections; empty if it does."""
        try:
            socket.create_connection((server, port), CONNECT_SECONDS).close()
        except OSError as error:
            return str(error)
        return ""

    def settle(self) -> None:
        """Wait up to 30 s until udev has made the links of new devices. The next commands also work without them."""
        self.ask("udevadm", "settle", "--timeout=30")

    def fstab(self) -> str:
        """The text of /etc/fstab; empty if there is none."""
        return FSTAB.read_text(encoding="utf-8") if FSTAB.exists() else ""

    def write_fstab(self, text: str) -> None:
        """Replace /etc/fstab, and reload systemd: with its old units, systemd would unmount new mounts."""
        files.write(FSTAB, text)
        self.do("systemctl", "daemon-reload")

    def immutable(self, path: Path) -> bool:
        """Whether a directory is immutable: not even root can create files in it."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = struct.unpack("l", fcntl.ioctl(handle, GET_FLAGS, bytes(struct.calcsize("l"))))[0]
        except OSError:
            return False
        finally:
            os.close(handle)
        return bool(flags & IMMUTABLE)

    def protect(self, path: Path) -> None:
        """Make an empty mount point immutable. Some file systems and containers do not support this; no error then."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = struct.unpack("l", fcntl.ioctl(handle, GET_FLAGS, bytes(struct.calcsize("l"))))[0]
            fcntl.ioctl(handle, SET_FLAGS, struct.pack("l", flags | IMMUTABLE))
        except OSError:
            return
        finally:
            os.close(handle)


def number(path: str) -> str:
    """A block device's MAJOR:MINOR."""
    device = os.stat(path).st_rdev
    return f"{os.major(device)}:{os.minor(device)}"
