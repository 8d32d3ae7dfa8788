# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds which program configures a network device. Private to the collection.

Debian has three such programs: ifupdown, systemd-networkd and NetworkManager. Only files are read, below a root.
"""

from __future__ import annotations

import configparser
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

from ...core import files, sysfs

MANAGERS = IFUPDOWN, NETWORKD, NETWORKMANAGER = ("ifupdown", "networkd", "networkmanager")

INTERFACES = "etc/network/interfaces"
DEEPEST_SOURCE = 5
"""How deep files of ifupdown may include further files. Deeper files are ignored."""

NETWORKD_STATE = "run/systemd/netif/state"
"""networkd writes this file when it starts."""

NETWORKD_LINKS = "run/systemd/netif/links"
NETWORKD_UNMANAGED = ("", "unmanaged", "linger", "pending")
"""States of a link that networkd does not configure. Source: network-util.c and networkd-link.c of systemd."""

UDEV_DATA = "run/udev/data"
OWN_LINKS = ("/etc/", "/run/")
"""Directories for .link files of operators and of their programs. Debian's .link files are elsewhere."""

NM_DEVICES = "run/NetworkManager/devices"
NM_PROFILES = ("etc/NetworkManager/system-connections", "run/NetworkManager/system-connections")
NM_META = ".nmmeta"
"""The section by which NetworkManager marks profiles that it has made itself: with DHCP for each Ethernet device
without a profile, or to show what other programs have configured. Source: nm-keyfile-internal.h of NetworkManager."""


@dataclass(frozen=True)
class Manager:
    """A program that configures a network device."""

    name: str
    file: str | None
    """The file that names the device; None if unknown."""
    mtu: int | None
    """The MTU that the file asks for; None without one."""


@dataclass(frozen=True)
class LinkFile:
    """A file by which udev gives a network device its name, MTU and more."""

    file: str
    mtu: int | None
    """The MTU that the file asks for; None without one."""


@dataclass(frozen=True)
class Stanza:
    """An `iface` stanza of ifupdown."""

    netdev: str
    file: str
    mtu: int | None


def managers(root: Path, netdev: str, stanzas: Sequence[Stanza]) -> list[Manager]:
    """The programs that configure a network device; several if their configurations overlap."""
    index = sysfs.read(root / sysfs.NETDEVS / netdev / "ifindex")
    own = [stanza for stanza in stanzas if stanza.netdev == netdev]
    found = []
    if own:
        mtu = next((stanza.mtu for stanza in own if stanza.mtu is not None), None)
        found.append(Manager(IFUPDOWN, own[0].file, mtu))
    found += [manager for manager in (_networkd(root, index), _networkmanager(root, netdev, index)) if manager]
    return found


def stanzas(root: Path) -> list[Stanza]:
    """The network devices in the files of ifupdown, except the loopback device. Files that are missing have none."""
    return [stanza for stanza in _stanzas(root, root / INTERFACES, DEEPEST_SOURCE) if stanza.netdev != "lo"]


def reads_directory(root: Path, directory: str) -> bool:
    """Whether ifupdown's main file reads the files of a directory, such as /etc/network/interfaces.d."""
    path = root / INTERFACES
    base = f"/{INTERFACES.rpartition('/')[0]}"
    for line in _logical_lines(_text(path)):
        kind, *patterns = line.split()
        if kind in ("source", "source-directory"):
            wanted = f"{directory}/file" if kind == "source" else directory
            if any(fnmatch(wanted, os.path.normpath(f"{base}/{one}" if one[0] != "/" else one)) for one in patterns):
                return True
    return False


def _stanzas(root: Path, path: Path, depth: int) -> Iterator[Stanza]:
    name, mtu = "", None
    for line in _logical_lines(_text(path)):
        words = line.split()
        if words[0] in ("iface", "auto", "mapping", "source", "source-directory", "no-auto-down", "no-scripts") or (
            words[0].startswith("allow-")
        ):
            if name:
                yield Stanza(name, _shown(root, path), mtu)
            name, mtu = (words[1] if words[0] == "iface" and len(words) > 1 else ""), None
        elif words[0] == "mtu" and len(words) > 1:
            mtu = sysfs.integer(words[1])
        if words[0] in ("source", "source-directory") and depth:
            for pattern in words[1:]:
                for file in _sourced(root, path, pattern, directory=words[0] == "source-directory"):
                    yield from _stanzas(root, file, depth - 1)
    if name:
        yield Stanza(name, _shown(root, path), mtu)


def _logical_lines(text: str) -> Iterator[str]:
    """The lines without comments; a backslash at the end of a line joins it with the next."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _sourced(root: Path, path: Path, pattern: str, directory: bool) -> list[Path]:
    """The files of a line `source` or `source-directory`, whose path may be relative to the file."""
    base = root / pattern.lstrip("/") if pattern.startswith("/") else path.parent / pattern
    found = [Path(name) for name in sorted(glob.glob(str(base)))]
    if not directory:
        return [file for file in found if file.is_file()]
    # ifupdown reads only files with such names. Source: interfaces(5).
    inner = [place / name for place in found for name in sysfs.names(place)]
    return [file for file in inner if file.is_file() and re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", file.name)]


def link_file(root: Path, netdev: str) -> LinkFile | None:
    """The .link file that udev has applied to a network device, unless the file is Debian's. Source: the property
    ID_NET_LINK_FILE of udev's builtin net_setup_link."""
    index = sysfs.read(root / sysfs.NETDEVS / netdev / "ifindex")
    match = re.search(r"(?m)^E:ID_NET_LINK_FILE=(.+)$", _text(root / f"{UDEV_DATA}/n{index}"))
    if match is None or not match[1].startswith(OWN_LINKS):
        return None
    return LinkFile(match[1], _mtu_of(root, match[1]))


def names_devices(root: Path) -> bool:
    """Whether udev gives network devices the names of Debian's 99-default.link. Operators who want the kernel's names,
    such as eth0, put an empty file or a link to /dev/null in its place. Source: systemd.link(5)."""
    for directory in OWN_LINKS:
        path = root / f"{directory.strip('/')}/systemd/network/99-default.link"
        if path.is_symlink() or path.exists():
            return bool(_text(path).strip())
    return True


def _mtu_of(root: Path, file: str) -> int | None:
    """The MTU in a .link or .network file, or in the drop-in files next to it, which win."""
    path, mtu = root / file.lstrip("/"), None
    for part in (path, *sorted(Path(f"{path}.d").glob("*.conf"))):
        mtu = _number(part, "Link", "MTUBytes", mtu)
    return mtu


def _networkd(root: Path, index: str | None) -> Manager | None:
    """networkd, by the state that it writes for each link: sd_network_link_get_setup_state of systemd reads it."""
    words = dict(
        line.partition("=")[::2] for line in _text(root / NETWORKD_LINKS / str(index)).splitlines() if "=" in line
    )
    if words.get("ADMIN_STATE", "") in NETWORKD_UNMANAGED:
        return None
    file = words.get("NETWORK_FILE") or None
    return Manager(NETWORKD, file, _mtu_of(root, file) if file else None)


def _networkmanager(root: Path, netdev: str, index: str | None) -> Manager | None:
    """NetworkManager, by the state that it writes for each device, and by its profiles."""
    state = _ini(root / NM_DEVICES / str(index))
    managed = _true(state, "device", "managed")
    # A profile may name a device by its address.
    active = state.get("device", "connection-uuid", fallback="")
    for directory in NM_PROFILES:
        for name in sysfs.names(root / directory):
            profile = _ini(root / directory / name)
            named = profile.get("connection", "interface-name", fallback="") == netdev
            if not named and (not active or profile.get("connection", "uuid", fallback="") != active):
                continue
            if _true(profile, NM_META, "external"):
                # Only shows what another program has configured.
                managed = False
            elif not _true(profile, NM_META, "nm-generated"):
                sections = ("ethernet", "802-3-ethernet", "infiniband")
                mtus = [sysfs.integer(profile.get(section, "mtu", fallback="")) for section in sections]
                return Manager(NETWORKMANAGER, f"/{directory}/{name}", next(filter(None, mtus), None))
    return Manager(NETWORKMANAGER, None, None) if managed else None


def _true(file: configparser.RawConfigParser, section: str, key: str) -> bool:
    """Whether a value is true. NetworkManager writes true; versions of Debian 12 and 13 accept 1 as well."""
    return file.get(section, key, fallback="false").casefold() in ("true", "1")


def _number(path: Path, section: str, key: str, otherwise: int | None) -> int | None:
    """A number of bytes in a file of systemd, such as 9000 or 9K; the last line counts."""
    for line in re.findall(rf"(?mi)^\s*{key}\s*=\s*(\S+)", _section(_text(path), section)):
        match = re.fullmatch("([0-9]{1,9})([KM]?)", line.upper())
        if match:
            otherwise = int(match[1]) * {"": 1, "K": 1024, "M": 1 << 20}[match[2]]
    return otherwise


def _section(text: str, name: str) -> str:
    """The lines of a section of an ini file, from all parts of the file with this section."""
    pieces = re.split(r"(?m)^\s*\[([^]\n]*)\]\s*$", text)
    return "\n".join(body for title, body in zip(pieces[1::2], pieces[2::2], strict=True) if title == name)


def _ini(path: Path) -> configparser.RawConfigParser:
    """A file of NetworkManager; empty if it is missing or damaged."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def _text(path: Path) -> str:
    try:
        return files.text(path) or ""
    except OSError:
        return ""


def _shown(root: Path, path: Path) -> str:
    """A path as the node sees it."""
    try:
        return f"/{path.relative_to(root)}"
    except ValueError:
        return str(path)
