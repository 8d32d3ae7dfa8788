# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps packages at their version, by a pin, a blacklist and a hold. Private to the collection."""

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
"""Names a module that no longer exists: files on nodes are recognised by this line."""

PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+*-]+")
"""A package's name, with wildcards. Source: Debian policy 5.6.1."""

VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~*-]*")
"""A version, with wildcards. A wildcard alone would pin nothing, and does not match. Source: Debian policy 5.6.12."""

NAME = re.compile(r"[a-z0-9_-]+")
"""The name of a set of pins, and of its files. apt allows letters, digits, _, - and . there: apt.conf(5)."""

ITEM = re.compile(r'^ +"\^(.*)\$";$', re.M)
"""A line of a blacklist that this module wrote."""


def file_name(name: str) -> str:
    """The name of the files of a set of pins."""
    return f"52-{name}"


def held_patterns(name: str) -> list[str]:
    """The packages that a set of pins holds, with * as a wildcard; empty if there is no such set. Raises OSError."""
    path = ETC_APT / "apt.conf.d" / file_name(name)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [item.replace(".*", "*").replace("\\", "") for item in ITEM.findall(text)] if HEADER in text else []


def preferences(pinned: Sequence[str], version: str, versions: Mapping[str, str] | None = None) -> str:
    """The text of the preferences; empty without pins. The priority is above 1000, which allows downgrades.

    The text does not depend on the order of the packages.
    """
    pins = [(" ".join(sorted(pinned)), version)] if pinned else []
    stanzas = [
        f"Package: {packages}\nPin: version {wanted}\nPin-Priority: 1001\n"
        for packages, wanted in [*pins, *sorted((versions or {}).items())]
    ]
    return "\n".join([f"# {HEADER}\n{stanzas[0]}", *stanzas[1:]]) if stanzas else ""


class PinError(Exception):
    """dpkg failed. The message has its words."""


def mistakes(
    name: str, packages: list[str], pinned: list[str], version: str, versions: dict[str, str] | None = None
) -> list[str]:
    """Problems with the module's parameters: wrong files could break apt on the node."""
    found = [] if NAME.fullmatch(name) else [f"name {name!r}: must have only a-z, 0-9, _ and -"]
    found += [
        f"packages: {item!r} is not a package's name: use a name without a version; * is a wildcard"
        for item in packages
        if not PACKAGE.fullmatch(item)
    ]
    found += [f"pinned: {item!r} is not in packages: add it there" for item in pinned if item not in packages]
    if pinned and not VERSION.fullmatch(version):
        found.append(f"version {version!r}: must be a version in apt's form, with * as a wildcard, as 20.10.24*")
    for package, wanted in (versions or {}).items():
        if package not in packages or package in pinned:
            found.append(f"versions: {package!r} must be in packages, and not in pinned")
        if not VERSION.fullmatch(str(wanted)):
            found.append(f"versions: {package}: {wanted!r} must be a version in apt's form, with * as a wildcard")
    return found


def blacklist(packages: list[str]) -> str:
    """The text that excludes packages from unattended upgrades; empty without packages. apt merges all files' lists.

    Sorted, because Ansible's filters on sets return another order in each run.
    """
    if not packages:
        return ""
    items = "".join(f'        "^{expression(package)}$";\n' for package in sorted(packages))
    return f"// {HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{items}}};\n"


def expression(package: str) -> str:
    """A package's name with wildcards as a regular expression."""
    return ".*".join(re.escape(part) for part in package.split("*"))


def listed(text: str) -> list[re.Pattern[str]]:
    """The packages of a blacklist that this module wrote; empty for any other file."""
    return [re.compile(item) for item in ITEM.findall(text)] if HEADER in text else []


def states(output: str) -> dict[str, bool]:
    """Whether each installed package is on hold, by name, from dpkg-query's lines ``want status package``."""
    lines = [line.split() for line in output.splitlines()]
    return {words[2]: words[0] == "hold" for words in lines if len(words) == 3 and words[1] == "installed"}


def query(run: Callable[..., tuple[int, str, str]], *names: str) -> dict[str, bool]:
    """Whether packages are on hold, by name. Without names, of all installed packages. Raises PinError."""
    form = "${db:Status-Want} ${db:Status-Status} ${Package}\n"
    code, output, words = run(["dpkg-query", "--show", f"--showformat={form}", *names])
    # Exit code 1: dpkg-query does not know one of the packages.
    if code not in (0, 1):
        raise PinError(f"dpkg-query failed ({code}): {words.strip()}")
    return states(output)


def not_held(run: Callable[..., tuple[int, str, str]], names: Sequence[str]) -> list[str]:
    """The packages of `names` that a set of pins on this node declares as held, and that are not on hold.

    The role that installs a package need not be the role that holds it: the driver's role installs headers of kernels,
    and the role common holds them. Raises PinError and OSError.
    """
    patterns = [item for path in sorted((ETC_APT / "apt.conf.d").glob("52-*")) for item in listed(read(path))]
    found = [name for name in names if any(item.fullmatch(name) for item in patterns)]
    held = query(run, *found) if found else {}
    return [name for name in found if not held.get(name)]


class Pins:
    """A set of pins on this node. `run` is the module's run_command."""

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

    def to_release(self, old: str) -> list[str]:
        """The held packages of the old blacklist that no set of pins declares any more. Raises PinError."""
        others = [path for path in self.blacklist.parent.glob("52-*") if path != self.blacklist]
        kept = [*listed(self.texts[self.blacklist]), *(item for path in others for item in listed(read(path)))]
        dropped = [item for item in listed(old) if item not in kept]
        if not dropped:
            return []
        held = [package for package, on_hold in query(self.run).items() if on_hold]
        return [
            package
            for package in held
            if any(item.fullmatch(package) for item in dropped) and not any(item.fullmatch(package) for item in kept)
        ]

    def apply(self, coming: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Write the files, and hold and release packages. In check mode, only predict the changes.

        `coming` has packages that the run will install: in check mode they count as installed. Returns the packages to
        hold and to release, and the diff of the files. Raises PinError and OSError.
        """
        before = {path: read(path) for path in self.texts}
        differing = [path for path in self.texts if before[path] != self.texts[path]]
        found = query(self.run, *self.packages) if self.packages else {}
        held = [package for package, on_hold in found.items() if not on_hold]
        if self.check:
            expected = {package.partition("=")[0] for package in coming} - set(found)
            held += sorted(name for item in self.packages for name in fnmatch.filter(expected, item))
        released = self.to_release(before[self.blacklist])
        if not self.check:
            # The holds come first: only the old blacklist says which packages to release.
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
        """How pins and holds differ from the declaration, as texts. For check mode. Raises PinError and OSError."""
        found = self.apply()
        return [
            *(f"{name} is not on hold" for name in found["held"]),
            *(f"{name} is on hold without need" for name in found["released"]),
            *(f"{one['before_header']} has another text" for one in found["diff"]),
        ]


def select(run: Callable[..., tuple[int, str, str]], hold: Sequence[str], release: Sequence[str] = ()) -> None:
    """Hold and release packages. Raises PinError."""
    selections = "".join(f"{package} hold\n" for package in hold)
    selections += "".join(f"{package} install\n" for package in release)
    code, output, words = run(["dpkg", "--set-selections"], data=selections)
    if code:
        raise PinError(f"dpkg --set-selections failed ({code}): {(words or output).strip()}")


def read(path: Path) -> str:
    """A file's text; empty without the file. Raises OSError and UnicodeDecodeError."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path: Path, text: str) -> None:
    """Replace a file in one step, readable for all users. An empty text removes the file."""
    if not text:
        path.unlink(missing_ok=True)
        return
    # An interrupted run can leave the new file. apt ignores names with this ending.
    new = path.with_name(f"{path.name}.dpkg-new")
    with new.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), 0o644)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)
