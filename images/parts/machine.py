# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk of a virtual machine: Debian 12 with a kernel and a boot loader of its own.

For what a container cannot show: the kernel's command line, hugepages, disks, a reboot. No loop device and no
privilege is needed: the file system is made from a directory, and the boot loader is written around it.
"""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path

from . import host
from .tools import CACHE, IMAGES, BuildError, bootstrap, content_hash, mirror_of, run, say

SOURCE = IMAGES / "machine"
SUITE = "bookworm"
DISK = CACHE / "machine/disk.qcow2"
"""A link to the newest disk. It is the base of each machine's own overlay, and never written."""

PACKAGES = (
    *("linux-image-amd64", "initramfs-tools", "busybox", "zstd", "grub-pc-bin", "grub2-common", "kmod", "udev"),
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "iproute2", "procps", "openssh-server", "sudo"),
    *("ca-certificates", "curl", "python3", "python3-apt", "python3-debian"),
    # What the role installs: a package takes a minute where the processor is emulated.
    *("nftables", "chrony", "logrotate", "unattended-upgrades", "mdadm", "lvm2", "xfsprogs", "e2fsprogs", "fdisk"),
    *("nfs-common", "nfs-kernel-server", "dmidecode", "rdma-core", "ibverbs-utils", "ibverbs-providers"),
    "perftest",
)
GRUB_MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "configfile", "search_label", "linux", "serial", "minicmd")
HOOKS = (
    # Installed and at rest, as after the installer: starting them is the role's work.
    "chroot $1 systemctl disable chrony nftables nfs-server rpcbind.service rpcbind.socket",
    # They would take a processor in the middle of a test.
    "chroot $1 systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer",
    "chroot $1 systemctl mask e2scrub_reap.service",
    "chroot $1 systemctl enable ssh.service ssh-keys.service systemd-networkd.service",
    "rm -f $1/etc/ssh/ssh_host_*",
    "echo nameserver 10.0.2.3 > $1/etc/resolv.conf",
    "cp -r $1/usr/lib/grub/i386-pc $1/boot/grub/",
    "chroot $1 grub-mkimage --format=i386-pc '--prefix=(,msdos1)/boot/grub' --output=/boot/grub/i386-pc/core.img "
    + " ".join(GRUB_MODULES),
)

SECTOR = 512
FIRST_SECTOR = 2048
"""Where the partition begins; the boot loader lies before it."""
GIB = 8
BOOT_CODE = 440
"""Bytes of the first sector that belong to the boot loader; the partition table follows."""


def build() -> str:
    """Build the disk. Raises BuildError."""
    authorities = host.certificates()
    mirror = [*mirror_of(SUITE), *host.apt_options()]
    name = content_hash(SOURCE, Path(__file__), *mirror, *authorities)
    disk = DISK.with_name(f"{name}.qcow2")
    if not disk.exists():
        DISK.parent.mkdir(parents=True, exist_ok=True)
        say("bootstrapping the machine's Debian (a minute and a half)")
        # In the system's own scratch space: without root, the builder is another user, who may not enter ours.
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch).chmod(0o777)
            make_disk(Path(scratch), authorities, disk)
    link = DISK.with_suffix(".new")
    link.unlink(missing_ok=True)
    link.symlink_to(disk.name)
    link.replace(DISK)
    for old in DISK.parent.glob("*.qcow2"):
        # One that still runs keeps its file open.
        if old not in (DISK, disk):
            old.unlink()
    return f"{DISK.name}: Debian {SUITE}, {disk.stat().st_size >> 20} MiB"


def make_disk(scratch: Path, authorities: list[Path], disk: Path) -> None:
    """Make the disk in a scratch directory that everybody may write to. Raises BuildError."""
    tarball, image = scratch / "root.tar", scratch / "disk.raw"
    # The kernel's package makes its initramfs by these, so that they must lie there before it.
    early = ("mkdir -p $1/etc/initramfs-tools", f"sync-in {SOURCE}/initramfs /etc/initramfs-tools")
    late = (
        f"sync-in {SOURCE}/root /",
        *(f"copy-in {path} /usr/local/share/ca-certificates/" for path in authorities),
        *("chroot $1 update-ca-certificates", *HOOKS),
        # Network devices with DCB: qemu has none.
        str(SOURCE / "module/build"),
    )
    bootstrap(
        *(SUITE, PACKAGES, tarball, "--dpkgopt=force-confold"),
        *(f"--essential-hook={hook}" for hook in early),
        *(f"--customize-hook={hook}" for hook in late),
    )
    say("making the disk")
    image.touch()
    image.chmod(0o666)
    # Owners are kept by root only, or by who is root in a user namespace.
    as_root = [] if os.geteuid() == 0 else ["mmdebstrap", "--unshare-helper"]
    script = f"""
    mkdir root
    tar --directory root --extract --preserve-permissions --file root.tar --exclude './dev/*'
    cp root/boot/grub/i386-pc/boot.img root/boot/grub/i386-pc/core.img .
    mkfs.ext4 -q -L root -d root -O ^metadata_csum_seed,^orphan_file -E offset={FIRST_SECTOR * SECTOR} \
      disk.raw {(GIB << 20) - (FIRST_SECTOR * SECTOR >> 10)}k
    rm -rf root
    """
    run(*as_root, "sh", "-ec", script, cwd=scratch)
    with image.open("r+b") as stream:
        stream.write(boot_loader((scratch / "boot.img").read_bytes(), (scratch / "core.img").read_bytes()))
        stream.truncate(GIB << 30)
    run("qemu-img", "convert", "-O", "qcow2", str(image), f"{disk}.part")
    Path(f"{disk}.part").replace(disk)


def boot_loader(boot: bytes, core: bytes) -> bytes:
    """What lies before the partition: the partition table, and GRUB as grub-install would have put it there.

    GRUB's boot.img loads the sector after itself, where core.img lies, by its own default. Raises BuildError where
    core.img does not fit.
    """
    if len(core) > (FIRST_SECTOR - 1) * SECTOR:
        raise BuildError(f"core.img has {len(core)} bytes: it would reach into the partition")
    sectors = (GIB << 30) // SECTOR - FIRST_SECTOR
    # Active, of type Linux (0x83); the addresses by cylinder are out of use.
    entry = struct.pack("<B3xB3xII", 0x80, 0x83, FIRST_SECTOR, sectors)
    table = (entry + bytes(3 * 16)).rjust(SECTOR - 2 - BOOT_CODE, b"\0")
    return boot[:BOOT_CODE] + table + b"\x55\xaa" + core
