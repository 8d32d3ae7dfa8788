# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats blank disks, mounts file systems and NFS exports, and creates directories. Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ..core import files
from ..core.problems import Problem
from . import directories, fstab
from . import disks as dk
from .block_devices import Mount
from .directories import DirectoryError
from .disk_host import SLOW, Host

MDADM_D = Path("/etc/mdadm/mdadm.conf.d")

SHARE_SECONDS = 40
"""Timeout in seconds of the mount of an NFS export."""

VOLUME = "data"
"""The name of the only logical volume in a group."""

ERRORS = (dk.DiskError, fstab.FstabError, DirectoryError)
"""Exceptions for a problem with one disk or share."""


class Unseen(Exception):
    """The rehearsal of a disk ends: the next steps depend on facts that only a real pass can read."""


class Pass:
    """One pass over the declared disks and shares. A rehearsal changes nothing: it records actions and problems."""

    def __init__(
        self,
        host: Host,
        disks: Sequence[dk.Disk],
        shares: Sequence[dk.Share],
        rehearsal: bool,
        users: bool = True,
        without: Container[str] = (),
    ) -> None:
        self.host = host
        works = [
            *((disk.where, partial(self.disk, disk)) for disk in disks),
            *((share.where, partial(self.share, share)) for share in shares),
        ]
        # Entries with a mistake are left out.
        self.works = [(where, work) for where, work in works if where not in without]
        self.rehearsal = rehearsal
        self.users = users
        """Whether the owners of directories must already exist."""
        self.actions: list[str] = []
        self.problems: list[Problem] = []
        self.seen: dict[str, str] = {}
        """The declared path of each device, by its MAJOR:MINOR."""
        self.fstab = host.fstab()

    def run(self) -> None:
        """Set up the disks and shares. A rehearsal collects a problem of each. A real pass raises DiskError."""
        for where, work in self.works:
            try:
                work()
            except Unseen:
                continue
            except (*ERRORS, OSError) as error:
                if not self.rehearsal:
                    raise dk.DiskError(f"{where}: {error}") from error
                self.problems.append(Problem(where, str(error)))

    def perform(self, sentence: str, action: Callable[[], None]) -> None:
        """Record an action, and perform it unless this is a rehearsal."""
        if not self.rehearsal:
            action()
        self.actions.append(sentence)

    # --- a disk

    def disk(self, disk: dk.Disk) -> None:
        """Set up a disk, from devices to directories on the mounted file system.

        Raises the exceptions of ERRORS, and Unseen in a rehearsal.
        """
        devices = self.devices(disk)
        joins = {"none": self.single, "raid0": self.array, "lvm": self.group}
        volume = joins[disk.join](disk, devices)
        making = f"with {disk.filesystem}, label {disk.label}"
        # A rehearsal cannot inspect a volume that does not exist yet.
        if volume is None:
            self.actions.append(f"format the new {disk.join} {making}")
        elif dk.volume_is_blank(disk, volume):
            blank = volume
            self.perform(f"format {blank} {making}", lambda: self.format(disk, blank))
            volume = None if self.rehearsal else self.formatted(disk, blank.path)
        self.mount(disk, volume)
        self.directories(disk, volume)

    def devices(self, disk: dk.Disk) -> list[dk.Device]:
        """The facts of the devices. Raises DiskError with all missing and duplicate devices."""
        found = []
        mistakes = []
        for path in disk.devices:
            try:
                device = self.host.blocks.device(path)
            except dk.DiskError as error:
                mistakes.append(str(error))
                continue
            if self.seen.setdefault(device.number, path) != path:
                mistakes.append(f"{path} and {self.seen[device.number]} are the same device, {device.kernel}")
            found.append(device)
        if mistakes:
            raise dk.DiskError("; ".join(mistakes))
        return found

    def single(self, _disk: dk.Disk, devices: list[dk.Device]) -> dk.Device:
        return devices[0]

    def array(self, disk: dk.Disk, devices: list[dk.Device]) -> dk.Device | None:
        """The disk's md array, created or assembled if needed; None if a rehearsal would create it.

        Raises DiskError, and Unseen if a rehearsal would assemble the array.
        """
        if not dk.is_own_array(disk, devices):
            dk.members_are_blank(disk, devices)
            self.perform(f"join {listed(devices)} as the raid0 {disk.label}", lambda: self.create_array(disk, devices))
            if self.rehearsal:
                return None
            devices = self.devices(disk)
        if not any(device.holders for device in devices):
            self.perform(f"assemble the raid0 {disk.label} of {listed(devices)}", lambda: self.assemble_array(disk))
            self.unseen(disk)
            devices = self.devices(disk)
        holders = sorted({holder for device in devices for holder in device.holders})
        level, state, members = self.host.blocks.array(holders[0]) if holders else ("", "", 0)
        if len(holders) != 1 or level != "raid0" or state in ("inactive", "clear") or members != len(devices):
            there = f"{', '.join(holders) or 'none'}, level {level or 'unknown'}, state {state or 'unknown'}"
            raise dk.DiskError(
                f"the devices belong to the array {disk.label}, which cannot be used: found {there}, with {members} "
                f"members; {len(devices)} are declared. Find the fault with: cat /proc/mdstat; mdadm --examine "
                + " ".join(disk.devices)
            )
        file, text = MDADM_D / f"{disk.label}.conf", dk.array_line(disk, devices[0].signatures[0].uuid)
        if not files.same(file, text):
            self.perform(f"name the array in {file}", lambda: keep(file, text))
        return self.host.blocks.device(f"/dev/{holders[0]}")

    def create_array(self, disk: dk.Disk, devices: list[dk.Device]) -> None:
        with self.still_blank(disk, devices):
            # Without --run, mdadm itself refuses devices with content.
            self.host.do(
                *("mdadm", "--create", f"/dev/md/{disk.label}", "--metadata=1.2", "--level=raid0", "--homehost=any"),
                # By default, mdadm leaves up to 128 MiB free, and old data could be at the beginning of the array.
                *(f"--name={disk.label}", "--data-offset=1M", f"--raid-devices={len(devices)}"),
                *(device.node for device in devices),
            )
        self.host.settle()

    def assemble_array(self, disk: dk.Disk) -> None:
        self.host.do("mdadm", "--assemble", f"/dev/md/{disk.label}", *disk.devices)
        self.host.settle()

    def group(self, disk: dk.Disk, devices: list[dk.Device]) -> dk.Device | None:
        """The disk's logical volume, created if needed; None if a rehearsal would create it.

        Raises DiskError, and Unseen if a rehearsal cannot read the volume yet.
        """
        members = any(signature.kind == "LVM2_member" for device in devices for signature in device.signatures)
        if members and not self.host.has("pvs"):
            self.perform(f"read the volumes of {listed(devices)}", lambda: None)
            self.unseen(disk)
        if not (members and dk.is_own_group(disk, devices, self.host.groups())):
            dk.members_are_blank(disk, devices)
            self.perform(
                f"join {listed(devices)} as the LVM group {disk.label}", lambda: self.create_group(disk, devices)
            )
            if self.rehearsal:
                return None
        volumes = self.host.volumes(disk.label)
        name = f"{disk.label}/{VOLUME}"
        if VOLUME not in volumes:
            words = ("lvcreate", "--type", "striped", "--stripes", str(len(devices)), "--extents", "100%FREE")
            self.perform(f"make the LVM volume {name}", lambda: self.host.do(*words, "--name", VOLUME, disk.label))
            if self.rehearsal:
                return None
        elif not volumes[VOLUME]:
            self.perform(f"activate the LVM volume {name}", lambda: self.host.do("lvchange", "--activate", "y", name))
            self.unseen(disk)
        return self.host.blocks.device(f"/dev/{name}")

    def create_group(self, disk: dk.Disk, devices: list[dk.Device]) -> None:
        with self.still_blank(disk, devices):
            # Without --yes, vgcreate itself refuses devices with content.
            self.host.do("vgcreate", disk.label, *(device.node for device in devices))

    def unseen(self, disk: dk.Disk) -> None:
        """End a rehearsal of the disk, whose volume cannot be read yet. Raises Unseen in a rehearsal."""
        if self.rehearsal:
            self.perform(f"mount {disk.label} at {disk.path}", lambda: None)
            raise Unseen

    @contextmanager
    def still_blank(self, disk: dk.Disk, devices: list[dk.Device]) -> Iterator[None]:
        """Lock devices for writing, and check that they are the same ones and still blank. Raises DiskError."""
        with self.host.blocks.locked(devices):
            now = [self.host.blocks.device(device.path) for device in devices]
            if [device.number for device in now] != [device.number for device in devices]:
                raise dk.DiskError(f"the names of {listed(devices)} now belong to other devices. Run again")
            dk.members_are_blank(disk, now)
            yield

    def format(self, disk: dk.Disk, volume: dk.Device) -> None:
        """Make a file system. Raises DiskError."""
        # No option forces the format. -m 0: data disks do not need the blocks that ext4 reserves for root.
        makers = {"ext4": ("mkfs.ext4", "-q", "-m", "0"), "xfs": ("mkfs.xfs", "-q")}
        with self.still_blank(disk, [volume]):
            self.host.do(*makers[disk.filesystem], "-L", disk.label, volume.node, timeout=SLOW)
        self.host.settle()

    def formatted(self, disk: dk.Disk, path: str) -> dk.Device:
        """The device after its format. Raises DiskError."""
        device = self.host.blocks.device(path)
        if not dk.is_own(disk, device):
            found = ", ".join(map(str, device.signatures)) or "nothing"
            raise dk.DiskError(f"{device} was formatted, but contains {found}. Find the fault with: journalctl --dmesg")
        return device

    def mount(self, disk: dk.Disk, volume: dk.Device | None) -> None:
        """Mount a volume, and add it to /etc/fstab. None: the volume does not exist yet.

        Raises DiskError and FstabError.
        """
        # A rehearsal without a UUID can still find conflicting lines.
        line = disk.line(volume.signatures[0].uuid if volume else f"(of the new {disk.label})")
        text = fstab.with_line(self.fstab, line)
        top = self.host.blocks.mounted_at(disk.path)
        if top is None:
            if volume and volume.mounts:
                raise dk.DiskError(
                    f"{volume} is already mounted at {', '.join(volume.mounts)}: unmount it, or declare that path"
                )
            self.check_mount_point(disk.path)
            source, path = (str(volume), volume.path) if volume else (disk.label, "")
            words = ["mount", "-t", disk.filesystem, "-o", ",".join(line.options), path, disk.path]
            self.perform(f"mount {source} at {disk.path}", lambda: self.attach(disk.path, text, *words))
        elif volume is None or (top.number, top.root) != (volume.number, "/"):
            raise dk.DiskError(taken(disk.path, top))
        elif text != self.fstab:
            words = ["mount", "-o", ",".join(["remount", *line.options]), disk.path]
            self.perform(
                f"remount {disk.path} with this line of /etc/fstab: {line}", lambda: self.attach("", text, *words)
            )
        self.fstab = text

    # --- a share

    def share(self, share: dk.Share) -> None:
        """Mount an NFS export. Raises DiskError and FstabError.

        If the export is already set up, the server need not answer: systemd mounts the export at the next access.
        """
        line = share.line()
        text = fstab.with_line(self.fstab, line)
        top = self.host.blocks.mounted_at(share.path)
        mounted = top is not None and top.kind.startswith("nfs")
        # autofs: systemd mounts the export at the first access.
        if top and top.kind != "autofs" and not (mounted and top.source.rstrip("/") == share.source.rstrip("/")):
            raise dk.DiskError(taken(share.path, top))
        new = top is None or (not mounted and text != self.fstab)
        why = self.host.connect(share.server, share.port) if new and self.rehearsal and share.port else ""
        if why:
            raise dk.DiskError(
                f"the server {share.server} does not answer on TCP port {share.port} ({why}). Check its name and "
                "address, whether it runs, and the firewalls between it and this node"
            )
        if top is None:
            self.check_mount_point(share.path)
            # The limit is for a server that accepts the connection and then does not answer.
            limit = ("timeout", "--kill-after=5", str(SHARE_SECONDS))
            options = ",".join([*line.options, "retry=0"])
            words = (*limit, "mount", "-t", "nfs", "-o", options, share.source, share.path)
            self.perform(f"mount {share.source} at {share.path}", lambda: self.attach(share.path, text, *words))
        elif text != self.fstab:
            self.perform(f"write this line to /etc/fstab: {line}", lambda: self.host.write_fstab(text))
        self.fstab = text

    # --- mount points

    def check_mount_point(self, path: str) -> None:
        """Check that an unmounted mount point has no files, which a mount would hide. Raises DiskError."""
        place = Path(path)
        if os.path.realpath(path) != path:
            real = os.path.realpath(path)
            raise dk.DiskError(f"{path} leads through a symbolic link to {real}: declare {real}")
        there = next(parent for parent in (place, *place.parents) if parent.exists())
        if there != place and self.host.immutable(there):
            raise dk.DiskError(f"{there} is immutable, like a mount point without its disk: run chattr -i {there}")
        if place.exists() and not place.is_dir():
            raise dk.DiskError(f"{path} is not a directory: move it away")
        names = sorted(os.listdir(path)) if place.is_dir() else []
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise dk.DiskError(
                f"{path} contains {shown}, which the mount would hide: move the files away, and back after the mount"
            )

    def attach(self, path: str, text: str, *words: str) -> None:
        """Write /etc/fstab and mount. If the mount fails, the old file is restored. `path`: a mount point to create.

        The file is written first: with its old units, systemd would unmount the new mount at once. Raises DiskError.
        """
        old = self.host.fstab()
        if path:
            for directory in [*reversed(Path(path).parents), Path(path)]:
                if not directory.exists():
                    directory.mkdir()
                    directory.chmod(0o755)
            self.host.protect(Path(path))
        try:
            if text != old:
                self.host.write_fstab(text)
            self.host.do(*words)
        except dk.DiskError as error:
            kept = "/etc/fstab is as before"
            try:
                if text != old:
                    self.host.write_fstab(old)
            except (dk.DiskError, OSError) as reason:
                kept = f"Restoring the old /etc/fstab failed, too: {reason}"
            raise dk.DiskError(f"{error}. {kept}. Find the fault with: journalctl --dmesg") from error

    # --- directories

    def directories(self, disk: dk.Disk, volume: dk.Device | None) -> None:
        """Create directories with owners and modes, but never in a mount point without its disk.

        Raises DiskError and DirectoryError.
        """
        top = self.host.blocks.mounted_at(disk.path)
        mounted = top is not None and volume is not None and top.number == volume.number
        if not mounted and not self.rehearsal:
            raise dk.DiskError(
                f"{disk.path} was mounted, but is no longer mounted. Find the fault with: systemctl status '*.mount'"
            )
        changes = []
        for item in disk.directories:
            try:
                owner = directories.identity(item.owner, "passwd")
                wanted = (owner, directories.identity(item.group, "group"), int(item.mode, 8))
            except DirectoryError:
                if self.users:
                    raise
                # This run creates the user before the directories.
                changes.append((item, (-1, -1, 0)))
                continue
            if not mounted or directories.identify(disk.path, item.path) != wanted:
                changes.append((item, wanted))
        if changes:
            names = ", ".join(f"{item.path} ({item.owner}:{item.group} {item.mode})" for item, _wanted in changes)
            places = [(item.path, wanted) for item, wanted in changes]
            self.perform(
                f"create the directories on {disk.path}: {names}", lambda: directories.make_all(disk.path, places)
            )


def listed(devices: Sequence[dk.Device]) -> str:
    """The devices as part of a sentence."""
    return " and ".join(map(str, devices))


def keep(path: Path, text: str) -> None:
    """Write a file that every user may read."""
    files.write(path, text)


def taken(path: str, mount: Mount) -> str:
    """Why a mount point cannot be used."""
    return (
        f"{path} is in use: {mount.source} ({mount.kind}) is mounted there. Unmount it and remove it from "
        "/etc/fstab, or declare another path"
    )
