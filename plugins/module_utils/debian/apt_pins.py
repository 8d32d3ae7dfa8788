# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that stay at their version, by a pin, a blacklist and a hold. Private to the collection.

The module apt_packages writes the pins, and lets apt-get simulate with them. Kept because: templates and a loop over
dpkg_selections took 1.2 s for what takes 0.3 s here, and could not release what is no longer declared.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ETC_APT = Path("/etc/apt")
PREFERENCES = ETC_APT / "preferences.d"
HEADER = "Managed by Ansible, module baremetal.inference.apt_pins: changes made here are lost."
"""Names a module that no longer exists, because the files on nodes are recognised by this very line."""

PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+*-]+")
"""A package's name, with wildcards. Source: Debian policy 5.6.1."""

VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~*-]*")
"""A version with wildcards. Source: Debian policy 5.6.12; a bare wildcard would pin nothing."""

NAME = re.compile(r"[a-z0-9_-]+")
"""What apt reads: a file whose name has other characters is left out. Source: apt.conf(5)."""

ITEM = re.compile(r'^ +"\^(.*)\$";$', re.M)
"""A line of a blacklist that the module wrote."""


def file_name(name: str) -> str:
    """The name of every file of a set of pins."""
    return f"52-{name}"


def held_patterns(name: str) -> list[str]:
    """The packages that a set of pins holds, with * as a wildcard; empty where there is no such set. Raises OSError."""
    path = ETC_APT / "apt.conf.d" / file_name(name)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [item.replace(".*", "*").replace("\\", "") for item in ITEM.findall(text)] if HEADER in text else []


def preferences(pinned: Sequence[str], version: str, versions: Mapping[str, str] | None = None) -> str:
    """The text that pins, empty where nothing is pinned; above 1000, so that a downgrade is meant too.

    Whatever order the packages come in, it is the same text.
    """
    pins = [(" ".join(sorted(pinned)), version)] if pinned else []
    stanzas = [
        f"Package: {packages}\nPin: version {wanted}\nPin-Priority: 1001\n"
        for packages, wanted in [*pins, *sorted((versions or {}).items())]
    ]
    return "\n".join([f"# {HEADER}\n{stanzas[0]}", *stanzas[1:]]) if stanzas else ""


class PinError(Exception):
    """What was declared, or what dpkg says, is not usable; the text is for the operator."""


def mistakes(
    name: str, packages: list[str], pinned: list[str], version: str, versions: dict[str, str] | None = None
) -> list[str]:
    """What is wrong with the module's parameters: these files could otherwise break apt on the node."""
    found = [] if NAME.fullmatch(name) else [f"name {name!r}: only a-z, 0-9, _ and - may be in it"]
    found += [
        f"packages: {item!r} is not a package's name: write the name, with * as a wildcard, and no version"
        for item in packages
        if not PACKAGE.fullmatch(item)
    ]
    found += [f"pinned: {item!r} is not among packages" for item in pinned if item not in packages]
    if pinned and not VERSION.fullmatch(version):
        found.append(f"version {version!r}: must be a version as apt shows it, with * as a wildcard, as 20.10.24*")
    for package, wanted in (versions or {}).items():
        if package not in packages or package in pinned:
            found.append(f"versions: {package!r} is not among packages, or is among pinned")
        if not VERSION.fullmatch(str(wanted)):
            found.append(f"versions: {package}: {wanted!r} must be a version as apt shows it, with * as a wildcard")
    return found


def blacklist(packages: list[str]) -> str:
    """The text that keeps unattended upgrades away, empty for no packages; apt merges the lists of all files.

    Sorted: the order means nothing, and Ansible's filters on sets give another one with each run.
    """
    if not packages:
        return ""
    items = "".join(f'        "^{expression(package)}$";\n' for package in sorted(packages))
    return f"// {HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{items}}};\n"


def expression(package: str) -> str:
    """A package's name with wildcards as a regular expression."""
    return ".*".join(re.escape(part) for part in package.split("*"))


def listed(text: str) -> list[re.Pattern[str]]:
    """The packages of a blacklist that this module wrote; none of one that it did not."""
    return [re.compile(item) for item in ITEM.findall(text)] if HEADER in text else []


def states(output: str) -> dict[str, bool]:
    """Whether a package that is installed is on hold, by name, from dpkg-query's ``want status package`` lines."""
    lines = [line.split() for line in output.splitlines()]
    return {words[2]: words[0] == "hold" for words in lines if len(words) == 3 and words[1] == "installed"}


class Pins:
    """The pins of one name on this node. `run` is the module's run_command."""

    def __init__(self, run: Callable[..., tuple[int, str, str]], wanted: Mapping[str, Any], check: bool) -> None:
        self.run = run
        self.check = check
        self.packages: list[str] = wanted["packages"]
        name = file_name(wanted["name"])
        self.blacklist = ETC_APT / "apt.conf.d" / name
        self.preferences = PREFERENCES / name
        self.texts = {
            self.preferences: preferences(wanted["pinned"], wanted["version"], wanted["versions"]),
            self.blacklist: blacklist(self.packages),
        }

    def query(self, *names: str) -> dict[str, bool]:
        """Whether the packages are on hold, all that are installed where none is named. Raises PinError."""
        form = "${db:Status-Want} ${db:Status-Status} ${Package}\n"
        code, output, words = self.run(["dpkg-query", "--show", f"--showformat={form}", *names])
        # 1: it does not know one of them.
        if code not in (0, 1):
            raise PinError(f"dpkg-query failed ({code}): {words.strip()}")
        return states(output)

    def to_release(self, old: str) -> list[str]:
        """The packages of the old blacklist that nothing declares any more. Raises PinError."""
        others = [path for path in self.blacklist.parent.glob("52-*") if path != self.blacklist]
        kept = [*listed(self.texts[self.blacklist]), *(item for path in others for item in listed(read(path)))]
        dropped = [item for item in listed(old) if item not in kept]
        if not dropped:
            return []
        held = [package for package, on_hold in self.query().items() if on_hold]
        return [
            package
            for package in held
            if any(item.fullmatch(package) for item in dropped) and not any(item.fullmatch(package) for item in kept)
        ]

    def apply(self, coming: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Write the files, hold and release; in check mode predict that, with `coming` as installed packages.

        Returns the packages held and released, and the files' diff. Raises PinError and OSError.
        """
        before = {path: read(path) for path in self.texts}
        differing = [path for path in self.texts if before[path] != self.texts[path]]
        found = self.query(*self.packages) if self.packages else {}
        held = [package for package, on_hold in found.items() if not on_hold]
        if self.check:
            expected = {package.partition("=")[0] for package in coming} - set(found)
            held += sorted(name for item in self.packages for name in fnmatch.filter(expected, item))
        released = self.to_release(before[self.blacklist])
        if not self.check:
            # First the selections: the old list is what tells which to release.
            if held or released:
                select(self.run, held, released)
            for path in differing:
                write(path, self.texts[path])
        diff = [
            {"before_header": str(path), "after_header": str(path), "before": before[path], "after": self.texts[path]}
            for path in differing
        ]
        return {"held": held, "released": released, "diff": diff}

    def reasons(self) -> list[str]:
        """What is not pinned and held as wanted, a sentence for each. For a check. Raises PinError and OSError."""
        found = self.apply()
        return [
            *(f"{name} is not on hold" for name in found["held"]),
            *(f"{name} is on hold for nothing" for name in found["released"]),
            *(f"{one['before_header']} has another text" for one in found["diff"]),
        ]


def select(run: Callable[..., tuple[int, str, str]], hold: Sequence[str], release: Sequence[str] = ()) -> None:
    """Put packages on hold, and take others off it. Raises PinError."""
    selections = "".join(f"{package} hold\n" for package in hold)
    selections += "".join(f"{package} install\n" for package in release)
    code, output, words = run(["dpkg", "--set-selections"], data=selections)
    if code:
        raise PinError(f"dpkg --set-selections failed ({code}): {(words or output).strip()}")


def read(path: Path) -> str:
    """A file's text, empty where it is not there. Raises OSError and UnicodeDecodeError."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path: Path, text: str) -> None:
    """Replace a file in one step, readable for all; an empty text removes it."""
    if not text:
        path.unlink(missing_ok=True)
        return
    # apt leaves a name with this ending alone, should the run be cut off.
    new = path.with_name(f"{path.name}.dpkg-new")
    with new.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), 0o644)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)
