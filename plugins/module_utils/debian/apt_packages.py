# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of packages: what they ask for, and what apt would make of them. Private to the collection."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.problems import Problem

REQUEST = re.compile(r"(?P<name>[a-z0-9][a-z0-9.+-]+)(?:=(?P<version>[0-9][A-Za-z0-9.+:~*-]*))?")
"""A package, with a version where one is wanted. Source: Debian policy 5.6.1 and 5.6.12."""

MICROCODE = {"GenuineIntel": "intel-microcode", "AuthenticAMD": "amd64-microcode"}
"""Debian's package of microcode, by the vendor in /proc/cpuinfo."""

ACTION = re.compile(r"^(Inst|Remv|Conf) (\S+)", re.M)
"""What apt-get --simulate would install, upgrade, remove or configure."""

FORM = "${db:Status-Want} ${db:Status-Status} ${Package} ${Version}\n"
"""What dpkg-query prints of each package, for read_installed."""

OPTIONS = (
    "--yes",
    "--quiet",
    "--no-install-recommends",
    # Which of them may change is decided here, for each by itself.
    "--allow-change-held-packages",
    # A timer's own apt may be at work.
    "--option=DPkg::Lock::Timeout=300",
    # apt-get has no terminal to ask at: files that were edited stay.
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
)

ENVIRONMENT = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "DEBIAN_FRONTEND": "noninteractive",
    # Of needrestart: say which services use old files, and restart none of them.
    "NEEDRESTART_MODE": "l",
}

WHOLE = ("installed", "triggers-awaited", "triggers-pending")
HALF = ("half-installed", "unpacked", "half-configured")
"""States of a package that is on the node: all of it, and what an installation that failed leaves. Source: dpkg(1)."""


@dataclass(frozen=True)
class Installed:
    """A package as dpkg knows it."""

    version: str
    held: bool = False
    whole: bool = True
    """Whether its installation was finished."""


@dataclass(frozen=True)
class Lists:
    """What is declared."""

    present: Mapping[str, str]
    """The version wanted, by name; empty where any will do."""
    absent: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()
    own_holds: tuple[str, ...] = ()
    """Patterns of packages whose hold is the caller's own, and no reason to leave them."""

    def missing(self, installed: Mapping[str, Installed]) -> list[str]:
        """The packages to install, as arguments of apt-get."""
        return [
            f"{name}={version}" if version else name
            for name, version in self.present.items()
            if name not in installed
            or not installed[name].whole
            or (version and not fnmatch.fnmatchcase(installed[name].version, version))
        ]

    def surplus(self, installed: Mapping[str, Installed]) -> list[str]:
        """The packages to remove."""
        return sorted(self.absent & set(installed))


@dataclass
class Reading:
    """The lists as they were read, with every mistake in them."""

    lists: Lists
    problems: list[Problem] = field(default_factory=list)


def read_lists(
    present: Iterable[str], absent: Iterable[str], optional: Iterable[str], held: Iterable[str] = ()
) -> Reading:
    """Read the lists. A package in two that contradict each other is a mistake."""
    problems: list[Problem] = []
    versions: dict[str, str] = {}
    for item in present:
        match = REQUEST.fullmatch(item)
        if not match:
            problems.append(
                Problem("present", f"{item!r} is no package: write NAME, or NAME=VERSION, as curl=8.14.1-2*")
            )
            continue
        name, version = match["name"], match["version"] or ""
        if version and versions.get(name) and versions[name] != version:
            problems.append(Problem("present", f"{name} is wanted at {versions[name]} and at {version}"))
        versions[name] = version or versions.get(name, "")
    for where, names in (("absent", list(absent)), ("optional", list(optional))):
        problems += [
            Problem(where, f"{name!r} is no package's name")
            for name in names
            if not REQUEST.fullmatch(name) or "=" in name
        ]
    lists = Lists(versions, frozenset(absent), tuple(name for name in optional if name not in versions))
    for name in sorted(lists.absent):
        if name in versions:
            problems.append(Problem("absent", f"{name} is declared as present too: take it out of one of the lists"))
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in held):
            problems.append(Problem("absent", f"{name} is declared as held too: take it out of one of the lists"))
    return Reading(lists, problems)


def read_installed(output: str) -> dict[str, Installed]:
    """What is there, be it half, from dpkg-query's lines in FORM."""
    rows = [line.split() for line in output.splitlines()]
    return {
        row[2]: Installed(row[3], row[0] == "hold", row[1] in WHOLE)
        for row in rows
        if len(row) == 4 and row[1] in (*WHOLE, *HALF)
    }


def absent_of(run: Callable[..., tuple[int, str, str]], names: Sequence[str]) -> list[str]:
    """The packages that are not on the node, or only half. `run` is a module's run_command. Raises OSError."""
    if not names:
        return []
    code, output, words = run(["dpkg-query", "--show", f"--showformat={FORM}", *names])
    # 1: dpkg-query does not know one of them.
    if code not in (0, 1):
        raise OSError(f"dpkg-query failed ({code}): {words.strip()}")
    installed = read_installed(output)
    return [name for name in names if name not in installed or not installed[name].whole]


def without(status: str, names: Iterable[str]) -> str:
    """dpkg's file of what is installed, but for these packages."""
    lines = {f"Package: {name}" for name in names}
    return "\n\n".join(stanza for stanza in status.split("\n\n") if stanza.lstrip("\n").partition("\n")[0] not in lines)


def read_candidates(output: str) -> set[str]:
    """The packages that some source offers, or that are installed, from ``apt-cache policy``."""
    found = re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: (.+)$", output, re.M)
    return {name for name, candidate in found if candidate != "(none)"}


@dataclass(frozen=True)
class Gap:
    """What lies between the lists and what is installed."""

    missing: list[str]
    """The packages to install, as arguments of apt-get."""
    surplus: list[str]
    unavailable: list[str]
    """The optional packages that no source offers."""


def gap(lists: Lists, installed: Mapping[str, Installed], policy: Callable[[list[str]], str]) -> Gap:
    """What there is to install and to remove. `policy` says what ``apt-cache policy`` prints of some packages."""
    wanted = [name for name in lists.optional if name not in installed]
    offered = read_candidates(policy(wanted)) if wanted else set()
    return Gap(
        [*lists.missing(installed), *(name for name in wanted if name in offered)],
        lists.surplus(installed),
        [name for name in wanted if name not in offered],
    )


def read_versions(output: str) -> list[str]:
    """The versions that the sources have of a package, the newest first, from ``apt-cache madison``."""
    fields = [line.split("|") for line in output.splitlines()]
    return list(dict.fromkeys(row[1].strip() for row in fields if len(row) == 3))


def read_components(output: str) -> list[str]:
    """The components that the node's sources have, of ``apt-get indextargets --format '$(COMPONENT)'``."""
    return sorted({line.strip() for line in output.splitlines()} - {""})


def unknown(words: str) -> list[str]:
    """The packages that no source has, from apt-get's complaints."""
    patterns = (
        r"^E: Unable to locate package (\S+)$",
        r"^E: Package '(\S+)' has no installation candidate$",
        r"^E: Version '.*' for '(\S+)' was not found$",
        r"^E: Couldn't find any package by (?:glob|regex) '(\S+)'$",
    )
    return list(dict.fromkeys(name for pattern in patterns for name in re.findall(pattern, words, re.M)))


@dataclass(frozen=True)
class Actions:
    """What apt-get would do."""

    changed: list[str]
    """Installed, or brought to another version."""
    removed: list[str]
    finished: list[str]
    """Only configured: an earlier installation did not come so far."""


def actions(output: str) -> Actions:
    """What apt-get would do, from its simulation."""
    names: dict[str, list[str]] = {"Inst": [], "Remv": [], "Conf": []}
    for verb, name in ACTION.findall(output):
        names[verb].append(name.partition(":")[0])
    return Actions(names["Inst"], names["Remv"], [name for name in names["Conf"] if name not in names["Inst"]])


def objections(lists: Lists, installed: Mapping[str, Installed], planned: Actions) -> list[str]:
    """Why a plan of apt-get must not be carried out: nothing goes, and nothing that is held moves, unless it is named.

    `installed` knows at least what is held.
    """
    found: list[str] = []
    for name in planned.removed:
        if name in lists.present:
            found.append(f"it would remove {name}, which is declared as present")
        elif name not in lists.absent:
            found.append(f"it would remove {name}: if that is meant, declare {name} as absent")
    for name in dict.fromkeys([*planned.changed, *planned.removed]):
        own = any(fnmatch.fnmatchcase(name, pattern) for pattern in lists.own_holds)
        if name in installed and installed[name].held and not lists.present.get(name) and not own:
            found.append(f"it would change {name}, which is on hold: if that is meant, run apt-mark unhold {name}")
    return found


def microcode(cpuinfo: str, virtual: bool) -> str:
    """The package with the microcode of this processor; empty for a guest, whose host loads it, and for others."""
    vendor = re.search(r"^vendor_id\s*:\s*(\S+)", cpuinfo, re.M)
    return "" if virtual or not vendor else MICROCODE.get(vendor[1], "")


def tail(output: str, words: str) -> str:
    """What apt-get complained of, and else the end of what it said, where dpkg says what failed."""
    errors = [line for line in words.splitlines() if line.startswith("E: ")]
    if any("dpkg" in line for line in errors) or not errors:
        return "\n".join([*output.splitlines()[-15:], *words.splitlines()[-15:]])
    return "\n".join(errors) if "unmet dependencies" not in output else "\n".join([*output.splitlines()[-15:], *errors])
