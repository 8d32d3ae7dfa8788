# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernels that a machine could boot next, and whether modules can be built for them. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

IMAGE, HEADERS = "linux-image-", "linux-headers-"

LEFTOVERS = (".dpkg-new", ".dpkg-old", ".dpkg-tmp", ".dpkg-dist", ".dpkg-bak")
"""Endings of files that GRUB's menu leaves out. Source: grub_file_is_not_garbage of
/usr/share/grub/grub-mkconfig_lib."""


NOUVEAU_BLACKLIST = "etc/modprobe.d/inference-nouveau.conf"
"""The file with which the role nvidia_driver blacklists nouveau."""


@dataclass(frozen=True)
class Kernel:
    """An installed kernel."""

    release: str
    headers: bool
    """Whether modules can be built: /lib/modules/RELEASE/build contains a Makefile."""


def installed(root: Path) -> list[Kernel]:
    """The kernels with an image in /boot, which could be booted next. Empty for a container, and for a machine that
    does not boot from /boot."""
    images = sorted(path.name for pattern in ("vmlinuz-*", "vmlinux-*") for path in (root / "boot").glob(pattern))
    releases = [name.partition("-")[2] for name in images if not name.endswith(LEFTOVERS)]
    return [kernel(root, release) for release in dict.fromkeys(releases)]


def kernel(root: Path, release: str) -> Kernel:
    """The kernel of a release, whether installed or not."""
    build = root / "lib/modules" / release / "build"
    if build.is_symlink():
        target = build.readlink()
        # An absolute link starts at the machine's root.
        build = root / target.relative_to("/") if target.is_absolute() else build.parent / target
    return Kernel(release, (build / "Makefile").exists())


def outdated_initrd(root: Path, release: str) -> bool:
    """Whether a kernel's initial RAM disk is older than the blacklist of nouveau, so it may contain nouveau.

    Uses the ctime of the blacklist, because a restored file may keep an older mtime.
    """
    try:
        made = (root / "boot" / f"initrd.img-{release}").stat().st_mtime
        return made < (root / NOUVEAU_BLACKLIST).stat().st_ctime
    except OSError:
        return False


def is_real_time(release: str) -> bool:
    """Whether a release is one of Debian's real-time kernels, as 6.1.0-77-rt-amd64."""
    return "rt" in release.split("-")


def header_packages(packages: Iterable[str]) -> list[str]:
    """Debian's packages of headers for all installed kernels, and for later kernels.

    For linux-image-6.1.0-50-amd64, linux-headers-6.1.0-50-amd64. For linux-image-amd64, which depends on each new
    kernel, linux-headers-amd64.
    """
    kinds = sorted(
        name.removeprefix(IMAGE) for name in packages if name.startswith(IMAGE) and not name.endswith("-dbg")
    )
    return list(dict.fromkeys(HEADERS + kind.removesuffix("-unsigned") for kind in kinds))
