# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses lists of packages, and compares them with dpkg and with apt's simulation. Private to the collection."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.problems import Problem

REQUEST = re.compile(r"(?P<name>[a-z0-9][a-z0-9.+-]+)(?:=(?P<version>[0-9][A-Za-z0-9.+:~*-]*))?")
"""A package, optionally with a version. Source: Debian policy 5.6.1 and 5.6.12."""

MICROCODE = {"GenuineIntel": "intel-microcode", "AuthenticAMD": "amd64-microcode"}
"""Debian's package with microcode, by the vendor in /proc/cpuinfo."""

ACTION = re.compile(r"^(Inst|Remv|Conf) (\S+)", re.M)
"""A line of apt-get --simulate: a package that it would install, upgrade, remove or configure."""

FORM = "${db:Status-Want} ${db:Status-Status} ${Package} ${Version}\n"
"""The format of dpkg-query's lines for read_installed."""

OPTIONS = (
    "--yes",
    "--quiet",
    "--no-install-recommends",
    # The function `objections` decides for each package whether it may change.
    "--allow-change-held-packages",
    # The apt of a timer may hold the lock.
    "--option=DPkg::Lock::Timeout=300",
    # apt-get cannot ask without a terminal: edited configuration files stay.
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
)

ENVIRONMENT = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "DEBIAN_FRONTEND": "noninteractive",
    # needrestart only lists services that use old files, and does not restart them.
    "NEEDRESTART_MODE": "l",
}

WHOLE = ("installed", "triggers-awaited", "triggers-pending")
HALF = ("half-installed", "unpacked", "half-configured")
"""States of installed packages, and of packages whose installation failed half-way. Source: dpkg(1)."""


@dataclass(frozen=True)
class Installed:
    """A package in dpkg's database."""

    version: str
    held: bool = False
    whole: bool = True
    """Whether the installation was completed."""


@dataclass(frozen=True)
class Lists:
    """The declared lists."""

    present: Mapping[str, str]
    """The wanted version, by name; empty for any version."""
    absent: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()
    own_holds: tuple[str, ...] = ()
    """Patterns of packages that the caller itself holds: a hold does not keep the caller from changing them."""

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
    """The parsed lists, with all problems."""

    lists: Lists
    problems: list[Problem] = field(default_factory=list)


def read_lists(
    present: Iterable[str], absent: Iterable[str], optional: Iterable[str], held: Iterable[str] = ()
) -> Reading:
    """Parse the lists. A package in two lists that contradict each other is a problem."""
    problems: list[Problem] = []
    versions: dict[str, str] = {}
    for item in present:
        match = REQUEST.fullmatch(item)
        if not match:
            problems.append(
                Problem("present", f"{item!r} is not a package: use NAME, or NAME=VERSION, as curl=8.14.1-2*")
            )
            continue
        name, version = match["name"], match["version"] or ""
        if version and versions.get(name) and versions[name] != version:
            problems.append(
                Problem("present", f"{name} has two versions, {versions[name]} and {version}: remove one of them")
            )
        versions[name] = version or versions.get(name, "")
    for where, names in (("absent", list(absent)), ("optional", list(optional))):
        problems += [
            Problem(where, f"{name!r} is not the name of a package: use a NAME such as curl")
            for name in names
            if not REQUEST.fullmatch(name) or "=" in name
        ]
    lists = Lists(versions, frozenset(absent), tuple(name for name in optional if name not in versions))
    for name in sorted(lists.absent):
        if name in versions:
            problems.append(Problem("absent", f"{name} is also declared as present: remove it from one of the lists"))
        if name in lists.optional:
            problems.append(Problem("absent", f"{name} is also declared as optional: remove it from one of the lists"))
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in held):
            problems.append(Problem("absent", f"{name} is also declared as held: remove it from one of the lists"))
    return Reading(lists, problems)


def read_installed(output: str) -> dict[str, Installed]:
    """The installed and half-installed packages, from dpkg-query's lines in FORM."""
    rows = [line.split() for line in output.splitlines()]
    return {
        row[2]: Installed(row[3], row[0] == "hold", row[1] in WHOLE)
        for row in rows
        if len(row) == 4 and row[1] in (*WHOLE, *HALF)
    }


def absent_of(run: Callable[..., tuple[int, str, str]], names: Sequence[str]) -> list[str]:
    """The packages that are not or only half installed. `run` is a module's run_command. Raises OSError."""
    if not names:
        return []
    code, output, words = run(["dpkg-query", "--show", f"--showformat={FORM}", *names])
    # Exit code 1: dpkg-query does not know one of the packages.
    if code not in (0, 1):
        raise OSError(f"dpkg-query failed ({code}): {words.strip()}")
    installed = read_installed(output)
    return [name for name in names if name not in installed or not installed[name].whole]


def without(status: str, names: Iterable[str]) -> str:
    """The text of dpkg's status file without these packages."""
    lines = {f"Package: {name}" for name in names}
    return "\n\n".join(stanza for stanza in status.split("\n\n") if stanza.lstrip("\n").partition("\n")[0] not in lines)


def read_candidates(output: str) -> set[str]:
    """The packages that a source offers or that are installed, from the output of ``apt-cache policy``."""
    found = re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: (.+)$", output, re.M)
    return {name for name, candidate in found if candidate != "(none)"}


@dataclass(frozen=True)
class Gap:
    """The differences between the lists and the installed packages."""

    missing: list[str]
    """The packages to install, as arguments of apt-get."""
    surplus: list[str]
    unavailable: list[str]
    """The optional packages that no source offers."""


def gap(lists: Lists, installed: Mapping[str, Installed], policy: Callable[[list[str]], str]) -> Gap:
    """Compare the lists with the installed packages. `policy` returns the output of ``apt-cache policy``."""
    wanted = [name for name in lists.optional if name not in installed or not installed[name].whole]
    offered = read_candidates(policy(wanted)) if wanted else set()
    return Gap(
        [*lists.missing(installed), *(name for name in wanted if name in offered)],
        lists.surplus(installed),
        [name for name in wanted if name not in offered],
    )


def read_versions(output: str) -> list[str]:
    """The available versions of a package, the newest first, from the output of ``apt-cache madison``."""
    fields = [line.split("|") for line in output.splitlines()]
    return list(dict.fromkeys(row[1].strip() for row in fields if len(row) == 3))


def read_components(output: str) -> list[str]:
    """The components of the node's sources, from ``apt-get indextargets --format '$(COMPONENT)'``."""
    return sorted({line.strip() for line in output.splitlines()} - {""})


def unknown(words: str) -> list[str]:
    """The packages that no source has, at all or in the wanted version, from the error messages of apt-get."""
    patterns = (
        r"^E: Unable to locate package (\S+)$",
        r"^E: Package '(\S+)' has no installation candidate$",
        r"^E: Version '.*' for '(\S+)' was not found$",
        r"^E: Couldn't find any package by (?:glob|regex) '(\S+)'$",
    )
    return list(dict.fromkeys(name for pattern in patterns for name in re.findall(pattern, words, re.M)))


@dataclass(frozen=True)
class Actions:
    """The changes that apt-get would make."""

    changed: list[str]
    """Packages to install, or to change to another version."""
    removed: list[str]
    finished: list[str]
    """Packages to configure only: an earlier installation was not completed."""


def actions(output: str) -> Actions:
    """Parse the output of apt-get's simulation."""
    names: dict[str, list[str]] = {"Inst": [], "Remv": [], "Conf": []}
    for verb, name in ACTION.findall(output):
        names[verb].append(name.partition(":")[0])
    return Actions(names["Inst"], names["Remv"], [name for name in names["Conf"] if name not in names["Inst"]])


def objections(lists: Lists, installed: Mapping[str, Installed], planned: Actions) -> list[str]:
    """Why apt-get must not make its planned changes: it may remove only packages of `absent`. It may change a
    package on hold only if `present` has its version, or `own_holds` matches it.

    `installed` must have at least the held packages.
    """
    found: list[str] = []
    for name in planned.removed:
        if name in lists.present:
            found.append(f"it would remove {name}, which is declared as present")
        elif name not in lists.absent:
            found.append(f"it would remove {name}: to allow this, declare {name} as absent")
    for name in dict.fromkeys([*planned.changed, *planned.removed]):
        own = any(fnmatch.fnmatchcase(name, pattern) for pattern in lists.own_holds)
        if name in installed and installed[name].held and not lists.present.get(name) and not own:
            found.append(f"it would change {name}, which is on hold: to allow this, run apt-mark unhold {name}")
    return found


def microcode(cpuinfo: str, virtual: bool) -> str:
    """The package with this processor's microcode; empty for a virtual machine and for other vendors."""
    vendor = re.search(r"^vendor_id\s*:\s*(\S+)", cpuinfo, re.M)
    return "" if virtual or not vendor else MICROCODE.get(vendor[1], "")


def tail(output: str, words: str) -> str:
    """The errors of apt-get. If dpkg failed, dependencies are unmet or there are no errors, also the output's end."""
    errors = [line for line in words.splitlines() if line.startswith("E: ")]
    if any("dpkg" in line for line in errors) or not errors:
        return "\n".join([*output.splitlines()[-15:], *words.splitlines()[-15:]])
    return "\n".join(errors) if "unmet dependencies" not in output else "\n".join([*output.splitlines()[-15:], *errors])
