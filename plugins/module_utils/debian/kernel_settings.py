# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings as files below /proc/sys and /sys, and what says them at boot. Private to the collection."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files

HEADER = "Managed by Ansible, module baremetal.inference.kernel_settings: changes made here are lost."
"""Names a module that no longer exists: with other text every node would get new files for nothing."""

PROC_SYS = "proc/sys"
SYSCTL_FILE = "60-inference.conf"
GOVERNORS = "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

HUGEPAGES = "sys/kernel/mm/hugepages"

PAGE_KIB = {"2M": 2048, "1G": 1048576}
"""Sizes of hugepages on amd64, in KiB. Source: Documentation/admin-guide/mm/hugetlbpage.rst of the kernel."""

HUGEPAGES_HINT = ". Memory is in pieces: have the kernel take them at its start, by common_kernel_cmdline"

SYSCTL_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")
"""Where systemd-sysctl looks; a file name of an earlier directory hides it in the later. Source: sysctl.d(5)."""

CHOICE = re.compile(r"\[(\S+)\]")
"""The value in force of a file that lists all of them, as in ``always [madvise] never``."""

CPU = re.compile(r"cpu[0-9]+")
"""The folder of one CPU in sysfs."""


@dataclass(frozen=True)
class Setting:
    """A value of the kernel: its name for people, its file below the root, and its wanted value."""

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
    by_name: dict[str, Path] = {}
    for directory in SYSCTL_DIRECTORIES:
        for path in sorted((root / directory).glob("*.conf")):
            # A broken link sets nothing; 99-sysctl.conf becomes one when sysctl.conf is deleted.
            if path.exists():
                by_name.setdefault(path.name, path)
    found = []
    for name in sorted(name for name in by_name if name > own):
        for key, value in parse_sysctl(by_name[name].read_text(encoding="utf-8", errors="replace")):
            if key in wanted and value.split() != wanted[key].split():
                place = "/" + str(by_name[name].resolve().relative_to(root.resolve()))
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


class KernelError(Exception):
    """A value cannot be set, or was not taken; the text is for the operator."""


def wanted_sysctls(params: dict[str, Any], root: Path) -> dict[str, Any]:
    """The sysctls that are asked for by name; a name may be written in two ways, and is one file."""
    wanted = {}
    for key, value in params["sysctl_where_present"].items():
        if (root / sysctl_path(key)).is_file():
            wanted[sysctl_path(key)] = (key, value)
    wanted |= {sysctl_path(key): (key, value) for key, value in params["sysctl"].items()}
    return {key: value for key, value in wanted.values() if value is not None}


def mistakes(params: dict[str, Any]) -> list[str]:
    """What no kernel would take."""
    found = [key_problem(key, value) for key, value in params["sysctl"].items() if value is not None]
    found += [
        f"hugepages of {size}: {count!r} cannot be; the sizes are {' and '.join(PAGE_KIB)}, with a number from 0"
        for size, count in params["hugepages"].items()
        if not _are_pages(size, count)
    ]
    return [problem for problem in found if problem]


def _are_pages(size: str, count: object) -> bool:
    return size in PAGE_KIB and str(count).isdecimal()


def settings_of(params: dict[str, Any], root: Path) -> tuple[list[Setting], list[Setting]]:
    """The sysctls and the other values that a module's parameters ask for, without its mistakes."""
    wanted = {key: value for key, value in wanted_sysctls(params, root).items() if not key_problem(key, value)}
    sysctls = [Setting(key, sysctl_path(key), str(value).strip()) for key, value in wanted.items()]
    others = []
    for size, count in params["hugepages"].items():
        if not _are_pages(size, count):
            continue
        path = f"{HUGEPAGES}/hugepages-{PAGE_KIB[size]}kB/nr_hugepages"
        others.append(Setting(f"hugepages of {size}", path, str(count)))
    if params["transparent_hugepage"]:
        path = "sys/kernel/mm/transparent_hugepage/enabled"
        others.append(Setting("transparent_hugepage", path, params["transparent_hugepage"]))
    if params["cpu_governor"]:
        for file in sorted(root.glob(GOVERNORS)):
            name = f"governor of {file.parts[-3]}"
            others.append(Setting(name, str(file.relative_to(root)), params["cpu_governor"]))
    return sysctls, others


class Kernel:
    """The running kernel and its files."""

    def __init__(self, root: Path, sysctls: list[Setting], others: list[Setting]) -> None:
        self.root = root
        self.sysctls = sysctls
        self.settings = [*sysctls, *others]
        wanted = {setting.name: setting.value for setting in sysctls}
        self.files = {
            root / "etc/sysctl.d" / SYSCTL_FILE: sysctl_file(wanted) if wanted else "",
            root / "etc/tmpfiles.d/inference.conf": tmpfiles_file(others) if others else "",
        }

    def problems(self) -> list[str]:
        """Everything that can be known before trying."""
        found = []
        unwritable = []
        for setting in self.settings:
            path = self.root / setting.path
            if not path.is_file():
                hint = absent(self.root, setting.name) if setting in self.sysctls else ""
                found.append(f"{setting.name}: this kernel has no /{setting.path}.{hint}")
            elif not self._matches(setting):
                if os.statvfs(path).f_flag & os.ST_RDONLY:
                    unwritable.append(setting.name)
                else:
                    found += self._refused(setting)
        if unwritable:
            found.append(
                f"{', '.join(unwritable)}: cannot be written here. A container has no kernel of its own:"
                " set common_sysctl_enabled: false"
            )
        found = [*dict.fromkeys(found), *self._too_large()]
        wanted = {setting.name.replace("/", "."): setting.value for setting in self.sysctls}
        return found + overriding(self.root, SYSCTL_FILE, wanted)

    def _refused(self, setting: Setting) -> list[str]:
        """What a kernel that may be written to says of one setting before it is tried."""
        path = self.root / setting.path
        if not os.access(path, os.W_OK):
            return [f"{setting.name}: this kernel allows no writes to /{setting.path}"]
        try:
            path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return [f"{setting.name}: cannot be read back, so it is no setting ({error})"]
        choices = path.with_name("scaling_available_governors")
        if choices.is_file() and setting.value not in (words := choices.read_text(encoding="utf-8").split()):
            return [f"cpu_governor: there is no {setting.value!r} here; allowed are {', '.join(words)}"]
        return []

    def _too_large(self) -> list[str]:
        """A request for more hugepages than memory is free would first drive out all else, and then fail."""
        wanted = 0
        for size, kib in PAGE_KIB.items():
            path = self.root / f"{HUGEPAGES}/hugepages-{kib}kB/nr_hugepages"
            for setting in self.settings:
                if setting.name == f"hugepages of {size}" and path.is_file():
                    wanted += max(int(setting.value) - int(path.read_text(encoding="utf-8")), 0) * kib
        if not wanted:
            return []
        meminfo = (self.root / "proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(int(line.split()[1]) for line in meminfo if line.startswith("MemAvailable:"))
        if wanted < free:
            return []
        return [f"hugepages: {wanted // 1024} MiB more are asked for, and {free // 1024} MiB of memory are free"]

    def differing(self) -> list[Setting]:
        """The values that the kernel does not have yet."""
        return [setting for setting in self.settings if not self._matches(setting)]

    def _matches(self, setting: Setting) -> bool:
        with suppress(OSError):
            return setting.matches((self.root / setting.path).read_text(encoding="utf-8"))
        return False

    def stale_files(self) -> list[Path]:
        """The files that say something else."""
        return [
            path for path, text in self.files.items() if not (files.same(path, text) if text else not path.exists())
        ]

    def apply(self) -> None:
        """Set every value and read it back; then write the files. Raises KernelError, with the old values in force."""
        differing = self.differing()
        before = [(self.root / item.path, current(self.root / item.path)) for item in differing]
        words = {setting.name: _set(self.root / setting.path, setting.value) for setting in differing}
        # All of them at the end: some undo others, as vm.dirty_bytes does vm.dirty_ratio.
        refused = []
        for setting in self.differing():
            found = " ".join((self.root / setting.path).read_text(encoding="utf-8").split())
            reason = f" ({words[setting.name]})" if words.get(setting.name) else ""
            hint = HUGEPAGES_HINT if setting.path.startswith(HUGEPAGES) else ""
            refused.append(f"{setting.name}: asked for {setting.value!r}, the kernel has {found!r}{reason}{hint}")
        if refused:
            for path, value in reversed(before):
                _set(path, value)
            # Some go one way only, as kernel.modules_disabled does.
            stuck = [str(path) for path, value in before if current(path) != value]
            rest = f"all are as before but {', '.join(stuck)}" if stuck else "all are as before"
            raise KernelError("\n- ".join([f"the kernel did not take these values; {rest}.", *refused]))
        for path in self.stale_files():
            if self.files[path]:
                files.write(path, self.files[path])
            else:
                path.unlink()


def current(path: Path) -> str:
    """What the kernel has; of several choices, the one in force. Raises OSError."""
    text = path.read_text(encoding="utf-8")
    choice = CHOICE.search(text)
    return choice[1] if choice else text.strip()


def _set(path: Path, value: str) -> str:
    """Write a value; returns the kernel's complaint, empty where it has none."""
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        return error.strerror or str(error)
    return ""
