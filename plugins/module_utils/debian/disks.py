# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which disks of a node are blank, which belong to this role, and which are refused. Private to the collection.

Pure: the input is the declaration and the facts, the output is decisions and problems. The module ``disks`` reads the
facts and makes the changes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..core.problems import Problem
from . import fstab

BY_ID = ("/dev/disk/by-id/", "/dev/disk/by-path/")
"""Directories with names that belong to a device or its slot. Kernel names can change at each boot."""

PREFIX = "inf-"
"""Prefix of a disk's name in the label of its file system. Later runs recognise the disk by its label."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,7}")
"""A disk's name. XFS allows labels of 12 characters, and the prefix needs four of them."""

PATH = re.compile(r"(/[A-Za-z0-9._-]+)+")
"""A mount point that /etc/fstab does not have to escape, and that is readable as the name of a unit."""

OPTION = re.compile(r"[^\s,]+")
MODE = re.compile(r"[0-7]{4}")
SOURCE = re.compile(r"(?P<server>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9.-]+):/[^\s,#]*")
"""An NFS export, HOST:/PATH. An IPv6 address is in brackets. Source: nfs(5)."""

OWN_OPTIONS = ("noauto", "nofail", "_netdev", "vers", "nfsvers")
"""Mount options that an entry must not have: the module decides them."""

NFS_PORT = 2049

DEVICE_TIMEOUT = "x-systemd.device-timeout=180s"
"""How long systemd waits for a disk after a boot. With nofail, the boot itself does not wait. A disk that
appears later stays unmounted."""

MOUNT_TIMEOUT = "x-systemd.mount-timeout=30s"
"""How long an access waits for a server that does not answer."""

PACKAGES: Mapping[str, tuple[str, str]] = {
    "ext4": ("mkfs.ext4", "e2fsprogs"),
    "xfs": ("mkfs.xfs", "xfsprogs"),
    "raid0": ("mdadm", "mdadm"),
    "lvm": ("lvcreate", "lvm2"),
    "nfs": ("mount.nfs", "nfs-common"),
}
"""Command and package of each tool. The tool is installed if the command exists."""


class DiskError(Exception):
    """A disk or share cannot be used as declared. The message says why."""


@dataclass(frozen=True)
class Directory:
    """A directory on a disk, below its mount point."""

    path: str
    owner: str = "root"
    group: str = "root"
    mode: str = "0755"


@dataclass(frozen=True)
class Disk:
    """A declared disk."""

    name: str
    devices: tuple[str, ...]
    path: str
    join: str = "none"
    filesystem: str = "ext4"
    options: tuple[str, ...] = ("noatime",)
    directories: tuple[Directory, ...] = ()
    adopt: bool = False

    @property
    def where(self) -> str:
        return f"common_disks.{self.name}"

    @property
    def label(self) -> str:
        """The name of the file system, array or volume group by which later runs recognise the disk."""
        return f"{PREFIX}{self.name}"

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that the disk needs, as keys of PACKAGES."""
        return (self.filesystem, *(() if self.join == "none" else (self.join,)))

    def line(self, uuid: str) -> fstab.Line:
        """The disk's line in /etc/fstab."""
        options = _with_defaults(self.options, ["nofail", DEVICE_TIMEOUT, f"{fstab.MARK}{self.name}"])
        # XFS needs no check at boot: it checks itself at the mount.
        return fstab.Line(f"UUID={uuid}", self.path, self.filesystem, options, 2 if self.filesystem == "ext4" else 0)


@dataclass(frozen=True)
class Share:
    """A declared NFS mount."""

    source: str
    path: str
    options: tuple[str, ...] = ("hard",)
    version: str = "4.2"

    @property
    def where(self) -> str:
        return f"common_nfs_mounts ({self.path})"

    @property
    def server(self) -> str:
        match = SOURCE.fullmatch(self.source)
        return match["server"].strip("[]") if match else ""

    @property
    def port(self) -> int:
        """The TCP port on which the server must answer; 0 if it does not use TCP, or the option `port` is no number."""
        values = dict(option.split("=", 1) for option in self.options if "=" in option)
        if values.get("proto", "tcp") not in ("tcp", "tcp6") or not values.get("port", "0").isdecimal():
            return 0
        return int(values.get("port", "0")) or NFS_PORT

    def line(self) -> fstab.Line:
        """The share's line in /etc/fstab. It is mounted on first use, so the server need not answer at boot."""
        ours = ["nofail", "_netdev", f"vers={self.version}", "x-systemd.automount", MOUNT_TIMEOUT, f"{fstab.MARK}nfs"]
        return fstab.Line(self.source, self.path, "nfs", _with_defaults(self.options, ours))


def _with_defaults(options: Sequence[str], defaults: Iterable[str]) -> tuple[str, ...]:
    """The options, and the defaults for options that are not set."""
    keys = {option.partition("=")[0] for option in options}
    return (*options, *(option for option in defaults if option.partition("=")[0] not in keys))


# --- what is declared


def declared_disks(entries: Sequence[Mapping[str, Any]]) -> tuple[list[Disk], list[Problem]]:
    """The declared disks, parent mount points first, and the problems of each that can be found without the node."""
    disks = []
    for entry in entries:
        directories = tuple(Directory(**item) for item in entry["directories"])
        lists = {"devices": tuple(entry["devices"]), "options": tuple(entry["options"])}
        disks.append(Disk(**{**entry, **lists, "directories": directories}))
    problems = [problem for disk in disks for problem in _disk_problems(disk)]
    problems += _repeated("common_disks", "name", [disk.name for disk in disks])
    devices = [device for disk in disks for device in disk.devices]
    problems += _repeated("common_disks", "devices", devices)
    return sorted(disks, key=lambda disk: disk.path), problems


def declared_shares(entries: Sequence[Mapping[str, Any]]) -> tuple[list[Share], list[Problem]]:
    """The declared NFS mounts, and the problems of each that can be found without the node."""
    shares = [Share(**{**entry, "options": tuple(entry["options"])}) for entry in entries]
    problems = []
    for share in shares:
        problems += _mount_problems(share.where, share.path, share.options)
        if not SOURCE.fullmatch(share.source):
            problems.append(Problem(share.where, "must be SERVER:/EXPORT, as nas1:/models", "source", share.source))
    return sorted(shares, key=lambda share: share.path), problems


def path_problems(disks: Sequence[Disk], shares: Sequence[Share]) -> list[Problem]:
    """Problems with mount points that are declared twice or that lie below an NFS mount."""
    entries: list[Disk | Share] = [*disks, *shares]
    problems = _repeated("common_disks and common_nfs_mounts", "path", [entry.path for entry in entries])
    for share in shares:
        for entry in entries:
            if share.path in map(str, PurePosixPath(entry.path).parents):
                message = f"is below the NFS mount {share.path}, whose server may not answer: choose another path"
                problems.append(Problem(entry.where, message, "path", entry.path))
    return problems


def _disk_problems(disk: Disk) -> list[Problem]:
    where = disk.where
    problems = _mount_problems(where, disk.path, disk.options)
    if not NAME.fullmatch(disk.name):
        message = (
            "must be 1 to 8 of a-z, 0-9 and -, not with - first, because it becomes a part of the file system's short "
            "label"
        )
        problems.append(Problem(where, message, "name", disk.name))
    for device in disk.devices:
        if not device.startswith(BY_ID) or PurePosixPath(device).parent not in map(PurePosixPath, BY_ID):
            message = (
                "must be a path below /dev/disk/by-id (or by-path, for the same slot on many nodes): "
                "kernel names can change at a boot. For the names, run: ls -l /dev/disk/by-id"
            )
            problems.append(Problem(where, message, "devices", device))
    several = len(disk.devices) > 1
    if not disk.devices:
        problems.append(Problem(where, "must name at least one device", "devices", []))
    elif several and disk.join == "none":
        problems.append(Problem(where, "must be raid0 or lvm for several devices", "join", disk.join))
    elif not several and disk.join != "none":
        problems.append(Problem(where, "is for several devices: remove it, or name more devices", "join", disk.join))
    if disk.adopt and disk.join != "none":
        message = (
            "is for a file system on one device: name the array or the volume itself as the device, by its "
            "/dev/disk/by-id/md-… or dm-… name, and remove join"
        )
        problems.append(Problem(where, message, "adopt", disk.adopt))
    for directory in disk.directories:
        path = directory.path
        if path != "." and (
            path.startswith("/") or not PATH.fullmatch(f"/{path}") or set(path.split("/")) & {".", ".."}
        ):
            message = f"must be relative to {disk.path}, without . and .. in it; a single . is the mount point itself"
            problems.append(Problem(where, message, "directories", path))
        if not MODE.fullmatch(directory.mode):
            problems.append(
                Problem(
                    f"{where}: directory {path}",
                    'must be four octal digits in quotes, as "0750"',
                    "mode",
                    directory.mode,
                )
            )
    return problems + _repeated(where, "directories", [directory.path for directory in disk.directories])


def _mount_problems(where: str, path: str, options: Sequence[str]) -> list[Problem]:
    problems = []
    if not PATH.fullmatch(path) or set(path.split("/")) & {".", ".."}:
        message = "must be absolute, with letters, digits, dots, dashes and underscores, without a slash at the end"
        problems.append(Problem(where, message, "path", path))
    for option in options:
        key = option.partition("=")[0]
        if not OPTION.fullmatch(option):
            problems.append(
                Problem(where, "must be a list of options, each without blanks and commas", "options", option)
            )
        elif key in OWN_OPTIONS or option.startswith(fstab.MARK):
            hint = "use version instead" if key in ("vers", "nfsvers") else "is for the role to decide: remove it"
            problems.append(Problem(where, hint, "options", option))
    return problems


def _repeated(where: str, key: str, values: Sequence[str]) -> list[Problem]:
    twice = sorted({value for value in values if values.count(value) > 1})
    return [Problem(where, "is declared more than once: remove one of the entries", key, value) for value in twice]


# --- what the node has


@dataclass(frozen=True)
class Signature:
    """Content of a device in libblkid's terms, such as a file system, a partition table, or a member of an array."""

    kind: str
    label: str = ""
    uuid: str = ""

    def __str__(self) -> str:
        details = [f"label {self.label!r}"] * bool(self.label) + [f"UUID {self.uuid}"] * bool(self.uuid)
        return f"{self.kind} ({', '.join(details)})" if details else self.kind


@dataclass(frozen=True)
class Device:
    """The facts of a block device."""

    path: str
    """The path by which the device was read."""
    kernel: str
    """The kernel's present name."""
    number: str
    """MAJOR:MINOR."""
    size: int = 0
    """Size in bytes."""
    model: str = ""
    signatures: tuple[Signature, ...] = ()
    partitions: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    """Devices that use this one: an array, a volume, a crypt or multipath mapping."""
    mounts: tuple[str, ...] = ()
    swap: bool = False
    read_only: bool = False
    busy: bool = False
    """Whether the kernel refuses to open the device exclusively."""
    empty: bool = True
    """Whether the first 4 MiB are like those of a new or wiped device."""
    doubts: tuple[str, ...] = ()
    """Texts on facts that could not be read."""

    @property
    def node(self) -> str:
        """The device node, for commands that format: `path` may belong to another device later."""
        return f"/dev/{self.kernel.replace('!', '/')}"

    def __str__(self) -> str:
        details = [self.kernel, f"{human(self.size)}", *([self.model] if self.model else [])]
        return f"{self.path} ({', '.join(details)})"


def human(size: int) -> str:
    """A size in bytes as text with decimal units, as printed on disks."""
    number, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}"


def obstacles(device: Device) -> list[str]:
    """Why a device is not certainly blank; empty if it is. Only a blank device may be joined or formatted."""
    found = [f"it contains {signature}" for signature in device.signatures]
    if device.partitions:
        found.append(f"it has the partitions {', '.join(device.partitions)}")
    if device.holders:
        found.append(f"{', '.join(device.holders)} {'uses' if len(device.holders) == 1 else 'use'} it")
    if device.mounts:
        found.append(f"it is mounted at {', '.join(device.mounts)}")
    if device.swap:
        found.append("it is swap in use")
    if device.read_only:
        found.append("it is read-only")
    if not device.size:
        found.append("it has no size: the drive is defective, or there is no medium")
    if device.busy and not found:
        found.append("the kernel or another program has it in exclusive use")
    if not device.empty and not device.signatures:
        found.append("its first 4 MiB contain unknown data (encrypted, or left by a removed file system)")
    return [*found, *device.doubts]


def is_own(disk: Disk, device: Device) -> bool:
    """Whether a device contains the disk's file system and nothing else."""
    kinds = [(signature.kind, signature.label) for signature in device.signatures]
    return len(kinds) == 1 and kinds[0][0] == disk.filesystem and (disk.adopt or kinds[0][1] == disk.label)


def volume_is_blank(disk: Disk, device: Device) -> bool:
    """Whether a volume is to be formatted; False if it has the disk's file system.

    Raises DiskError for any other content, and for a blank volume that should be adopted.
    """
    if is_own(disk, device):
        return False
    found = obstacles(device)
    if found:
        raise DiskError(refusal(disk, device, found))
    if disk.adopt:
        raise DiskError(f"{device} is blank, so there is nothing to adopt. To format it, remove adopt")
    return True


def refusal(disk: Disk, device: Device, found: Sequence[str]) -> str:
    """Why a device is refused, and what the operator can do."""
    ways = []
    file_systems = [signature for signature in device.signatures if signature.kind in ("ext4", "xfs")]
    if len(device.signatures) == len(file_systems) == 1 and disk.join == "none":
        kind = file_systems[0].kind
        ways.append(
            f"To mount its {kind} as it is, set adopt: true" + f" and filesystem: {kind}" * (kind != disk.filesystem)
        )
    if device.signatures or not device.empty or device.partitions:
        first = "release it (umount, swapoff, mdadm --stop, vgchange --activate n), " * bool(
            device.holders or device.mounts or device.swap
        )
        name = shlex.quote(device.path)
        ways.append(
            f"To discard its data, check the device (lsblk --fs {name}), {first}then run: "
            f"wipefs --all {name} && dd if=/dev/zero of={name} bs=1M count=4 conv=fsync"
        )
    return f"{device} is not changed, because {'; '.join(found)}. {'. '.join(ways)}".rstrip()


def is_own_array(disk: Disk, devices: Sequence[Device]) -> bool:
    """Whether all devices are members of the disk's md array, and have no other content."""
    members = [device.signatures[0] for device in devices if len(device.signatures) == 1]
    if len(members) != len(devices) or len({member.uuid for member in members}) != 1:
        return False
    # The label has the form HOST:NAME.
    return all(
        member.kind == "linux_raid_member" and member.label.rpartition(":")[2] == disk.label for member in members
    )


def is_own_group(disk: Disk, devices: Sequence[Device], groups: Mapping[str, str]) -> bool:
    """Whether the devices are the disk's whole LVM volume group. `groups`: the group of each device, by MAJOR:MINOR."""
    members = {number for number, group in groups.items() if group == disk.label}
    return bool(members) and members == {device.number for device in devices}


def members_are_blank(disk: Disk, devices: Sequence[Device]) -> None:
    """Check that all devices are blank. Raises DiskError with every device that is not."""
    found = [(device, obstacles(device)) for device in devices]
    refusals = [refusal(disk, device, reasons) for device, reasons in found if reasons]
    if refusals:
        raise DiskError("\n  ".join(refusals))


def array_line(disk: Disk, uuid: str) -> str:
    """The configuration by which mdadm assembles the array at boot. `uuid` is the array's, in libblkid's form."""
    digits = uuid.replace("-", "")
    parts = ":".join(digits[start : start + 8] for start in range(0, 32, 8))
    return (
        f"# Managed by Ansible, role baremetal.inference.common\nARRAY /dev/md/{disk.label} metadata=1.2 UUID={parts}\n"
    )
