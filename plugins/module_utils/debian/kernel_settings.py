# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings as files below /proc/sys and /sys, and what says them at boot. Private to the collection."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

HEADER = "Managed by Ansible, module baremetal.inference.kernel_settings: changes made here are lost."

PROC_SYS = "proc/sys"

SYSCTL_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")
"""Where systemd-sysctl looks; a file name of an earlier directory hides it in the later. Source: sysctl.d(5)."""

CHOICE = re.compile(r"\[(\S+)\]")
"""The value in force of a file that lists all of them, as in ``always [madvise] never``."""

CPU = re.compile(r"cpu[0-9]+")
"""The folder of one CPU in sysfs."""


@dataclass(frozen=True)
class Setting:
    """A value of the kernel: its name for people, its file below the root, and what it shall be."""

    name: str
    path: str
    value: str

    def matches(self, found: str) -> bool:
        """Whether a file's text means this value: numbers between any blanks, or the choice in brackets."""
        choice = CHOICE.search(found)
        return (choice[1] if choice else " ".join(found.split())) == " ".join(self.value.split())


def sysctl_path(key: str) -> str:
    """The file of a sysctl. A slash as first separator keeps dots in names. Source: sysctl.d(5)."""
    first = re.search(r"[./]", key)
    if first and first[0] == "/":
        return f"{PROC_SYS}/{key}"
    return f"{PROC_SYS}/" + key.translate(str.maketrans("./", "/."))


KEY = re.compile(r"[A-Za-z0-9_.:/@-]+")
"""Names of sysctls, interfaces' among them. No patterns: they could not be read back."""


def key_problem(key: str, value: object) -> str:
    """What is wrong with a sysctl before any kernel is asked, empty where nothing is."""
    path = sysctl_path(key)
    if not KEY.fullmatch(key) or "//" in path or ".." in path.split("/"):
        return f"{key!r}: this is no name of a sysctl"
    if (
        isinstance(value, bool)
        or not isinstance(value, int | str)
        or not str(value).strip()
        or "\n" in str(value).strip()
    ):
        return f"{key}: {value!r} is no value; allowed are a number, or a text of one line"
    return ""


MODULES = {"net.bridge.": "br_netfilter", "net.netfilter.": "nf_conntrack", "net.nf_conntrack": "nf_conntrack"}
"""Sysctls that are there only while a module of the kernel is loaded, by their first letters."""


def absent(root: Path, key: str) -> str:
    """What to say of a sysctl that is not there."""
    dotted = ".".join(sysctl_path(key).removeprefix(f"{PROC_SYS}/").split("/"))
    module = next((name for start, name in MODULES.items() if dotted.startswith(start)), "")
    if module:
        return f" It comes with the module {module}: load it by a file in /etc/modules-load.d, and modprobe {module}"
    near = nearest(root, key)
    return f" Did you mean {near}?" if near else ""


def nearest(root: Path, key: str) -> str:
    """The name of a sysctl that exists and looks most like a key, empty where none does."""
    top = root / PROC_SYS
    names = [".".join(path.relative_to(top).parts) for path in top.rglob("*") if path.is_file()]
    return (difflib.get_close_matches(key, names, 1) or [""])[0]


def overriding(root: Path, own: str, wanted: Mapping[str, str]) -> list[str]:
    """What other files would set at boot after our own file has said something else."""
    files: dict[str, Path] = {}
    for directory in SYSCTL_DIRECTORIES:
        for path in sorted((root / directory).glob("*.conf")):
            # A link to nowhere, as 99-sysctl.conf becomes where somebody deletes sysctl.conf, says nothing.
            if path.exists():
                files.setdefault(path.name, path)
    found = []
    for name in sorted(name for name in files if name > own):
        for key, value in parse_sysctl(files[name].read_text(encoding="utf-8", errors="replace")):
            if key in wanted and value.split() != wanted[key].split():
                place = "/" + str(files[name].resolve().relative_to(root.resolve()))
                found.append(
                    f"{key}: {place} sets {value!r} at boot, after ours ({wanted[key]!r}). Remove that"
                    " line, or declare what you want in common_sysctl (null leaves the key alone)"
                )
    return found


def parse_sysctl(text: str) -> Iterable[tuple[str, str]]:
    """Key (with dots) and value of every line."""
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith(("#", ";")):
            yield key.strip().removeprefix("-").replace("/", "."), value.strip()


def sysctl_file(values: Mapping[str, str]) -> str:
    """The text of our file in sysctl.d."""
    return "".join([f"# {HEADER}\n", *(f"{key} = {values[key]}\n" for key in sorted(values))])


def tmpfiles_file(settings: Iterable[Setting]) -> str:
    """The text of our file in tmpfiles.d, which writes what is no sysctl at boot. Source: tmpfiles.d(5)."""
    # CPUs have one line: a path may be a pattern.
    lines = {f"w- /{re.sub(CPU, 'cpu*', setting.path)} - - - - {setting.value}\n": None for setting in settings}
    return "".join([f"# {HEADER}\n", *lines])
