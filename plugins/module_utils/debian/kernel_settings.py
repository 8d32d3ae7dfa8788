# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets kernel parameters below /proc/sys and /sys, now and at every boot. Private to the collection."""

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
"""Names a module that no longer exists: with another text, every node would get new files without need."""

PROC_SYS = "proc/sys"
SYSCTL_FILE = "60-inference.conf"
GOVERNORS = "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

HUGEPAGES = "sys/kernel/mm/hugepages"

PAGE_KIB = {"2M": 2048, "1G": 1048576}
"""Sizes of hugepages on amd64, in KiB. Source: Documentation/admin-guide/mm/hugetlbpage.rst of the kernel."""

HUGEPAGES_HINT = ". The memory is fragmented: reserve the pages at boot, with common_kernel_cmdline"

SYSCTL_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")
"""Directories of systemd-sysctl. A file hides files of the same name in later directories. Source: sysctl.d(5)."""

CHOICE = re.compile(r"\[(\S+)\]")
"""The active value in a file that lists all choices, as in ``always [madvise] never``."""

CPU = re.compile(r"cpu[0-9]+")
"""The folder of one CPU in sysfs."""


@dataclass(frozen=True)
class Setting:
    """A value of the kernel: its name for messages, its file below the root, and the wanted value."""

    name: str
    path: str
    value: str

    def matches(self, found: str) -> bool:
        """Whether a file's text has this value: the choice in brackets, or words separated by any white space."""
        choice = CHOICE.search(found)
        return (choice[1] if choice else " ".join(found.split())) == " ".join(self.value.split())


def sysctl_path(key: str) -> str:
    """The file of a sysctl. If the first separator is a slash, dots are parts of names. Source: sysctl.d(5)."""
    first = re.search(r"[./]", key)
    if first and first[0] == "/":
        return f"{PROC_SYS}/{key}"
    return f"{PROC_SYS}/" + key.translate(str.maketrans("./", "/."))


KEY = re.compile(r"[A-Za-z0-9_.:/@-]+")
"""Names of sysctls, including those of interfaces. No patterns: they could not be read back."""


def key_problem(key: str, value: object) -> str:
    """A problem with a sysctl that can be found without the kernel; empty without one."""
    path = sysctl_path(key)
    if not KEY.fullmatch(key) or "//" in path or ".." in path.split("/"):
        return f"{key!r} is not the name of a sysctl: use a name such as vm.swappiness"
    if (
        isinstance(value, bool)
        or not isinstance(value, int | str)
        or not str(value).strip()
        or "\n" in str(value).strip()
    ):
        return f"{key}: {value!r} is not a valid value: use a number, or a text of one line"
    return ""


MODULES = {"net.bridge.": "br_netfilter", "net.netfilter.": "nf_conntrack", "net.nf_conntrack": "nf_conntrack"}
"""Kernel modules that provide sysctls, by the beginning of the sysctl's name."""


def absent(root: Path, key: str) -> str:
    """A hint for a sysctl that does not exist; empty without one."""
    dotted = ".".join(sysctl_path(key).removeprefix(f"{PROC_SYS}/").split("/"))
    module = next((name for start, name in MODULES.items() if dotted.startswith(start)), "")
    if module:
        return f" The module {module} provides it: add a file to /etc/modules-load.d, and run modprobe {module}"
    near = nearest(root, key)
    return f" Did you mean {near}?" if near else ""


def nearest(root: Path, key: str) -> str:
    """The existing sysctl whose name is most similar to a key; empty if none is similar."""
    top = root / PROC_SYS
    names = [".".join(path.relative_to(top).parts) for path in top.rglob("*") if path.is_file()]
    return (difflib.get_close_matches(key, names, 1) or [""])[0]


def overriding(root: Path, own: str, wanted: Mapping[str, str]) -> list[str]:
    """Problems with other files that would override our own file's values at boot."""
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
                    f"{key}: {place} sets {value!r} at boot, and overrides {wanted[key]!r}. Remove that"
                    " line, or set the key in common_sysctl (null keeps the system's value)"
                )
    return found


def parse_sysctl(text: str) -> Iterable[tuple[str, str]]:
    """Key (with dots) and value of every setting."""
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith(("#", ";")):
            yield key.strip().removeprefix("-").replace("/", "."), value.strip()


def sysctl_file(values: Mapping[str, str]) -> str:
    """The text of our file in sysctl.d."""
    return "".join([f"# {HEADER}\n", *(f"{key} = {values[key]}\n" for key in sorted(values))])


def tmpfiles_file(settings: Iterable[Setting]) -> str:
    """The text of our file in tmpfiles.d. At boot, it sets the values that are not sysctls. Source: tmpfiles.d(5)."""
    # One line for all CPUs, because a path can be a pattern.
    lines = {f"w- /{re.sub(CPU, 'cpu*', setting.path)} - - - - {setting.value}\n": None for setting in settings}
    return "".join([f"# {HEADER}\n", *lines])


class KernelError(Exception):
    """A value cannot be set, or the kernel did not accept it."""


def wanted_sysctls(params: dict[str, Any], root: Path) -> dict[str, Any]:
    """The wanted sysctls by name. A name can be written in two ways; both mean one file."""
    wanted = {}
    for key, value in params["sysctl_where_present"].items():
        if (root / sysctl_path(key)).is_file():
            wanted[sysctl_path(key)] = (key, value)
    wanted |= {sysctl_path(key): (key, value) for key, value in params["sysctl"].items()}
    return {key: value for key, value in wanted.values() if value is not None}


def mistakes(params: dict[str, Any]) -> list[str]:
    """Problems with the parameters that can be found without the kernel."""
    found = [key_problem(key, value) for key, value in params["sysctl"].items() if value is not None]
    found += [
        f"hugepages of {size}: {count!r} is not allowed: use the sizes {' and '.join(PAGE_KIB)}, and a number from 0"
        for size, count in params["hugepages"].items()
        if not _are_pages(size, count)
    ]
    return [problem for problem in found if problem]


def _are_pages(size: str, count: object) -> bool:
    return size in PAGE_KIB and str(count).isdecimal()


def settings_of(params: dict[str, Any], root: Path) -> tuple[list[Setting], list[Setting]]:
    """The wanted sysctls, and the other wanted values. Invalid parameters are left out."""
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
    """The values of the running kernel, and the files that set them at boot."""

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
        """All problems that can be found before a value is written."""
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
                f"{', '.join(unwritable)}: cannot be written here. A container shares its host's kernel:"
                " set common_sysctl_enabled: false"
            )
        found = [*dict.fromkeys(found), *self._too_large()]
        wanted = {setting.name.replace("/", "."): setting.value for setting in self.sysctls}
        return found + overriding(self.root, SYSCTL_FILE, wanted)

    def _refused(self, setting: Setting) -> list[str]:
        """Problems with one setting that can be found before the value is written."""
        path = self.root / setting.path
        if not os.access(path, os.W_OK):
            return [f"{setting.name}: this kernel allows no writes to /{setting.path}"]
        try:
            path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return [f"{setting.name}: cannot be read back ({error}): remove it from the variable"]
        choices = path.with_name("scaling_available_governors")
        if choices.is_file() and setting.value not in (words := choices.read_text(encoding="utf-8").split()):
            return [f"cpu_governor: {setting.value!r} is not available: use one of {', '.join(words)}"]
        return []

    def _too_large(self) -> list[str]:
        """A problem if the hugepages need more than the free memory. The kernel would evict programs, and then fail."""
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
        return [
            f"hugepages: {wanted // 1024} MiB more are wanted, but only {free // 1024} MiB of memory are free: set"
            " fewer pages"
        ]

    def differing(self) -> list[Setting]:
        """The settings whose value differs in the kernel."""
        return [setting for setting in self.settings if not self._matches(setting)]

    def _matches(self, setting: Setting) -> bool:
        with suppress(OSError, UnicodeDecodeError):
            return setting.matches((self.root / setting.path).read_text(encoding="utf-8"))
        return False

    def stale_files(self) -> list[Path]:
        """The files whose text differs."""
        return [
            path for path, text in self.files.items() if not (files.same(path, text) if text else not path.exists())
        ]

    def apply(self) -> None:
        """Set the values that differ, read them back, and write the files. KernelError: the old values are restored."""
        differing = self.differing()
        before = [(self.root / item.path, current(self.root / item.path)) for item in differing]
        words = {setting.name: _set(self.root / setting.path, setting.value) for setting in differing}
        # All values are read at the end, because one can reset another, as vm.dirty_bytes resets vm.dirty_ratio.
        refused = []
        for setting in self.differing():
            found = " ".join((self.root / setting.path).read_text(encoding="utf-8").split())
            reason = f" ({words[setting.name]})" if words.get(setting.name) else ""
            hint = HUGEPAGES_HINT if setting.path.startswith(HUGEPAGES) else ""
            refused.append(f"{setting.name}: wanted {setting.value!r}, but the kernel has {found!r}{reason}{hint}")
        if refused:
            for path, value in reversed(before):
                _set(path, value)
            # Some values cannot be reset, such as kernel.modules_disabled.
            stuck = [str(path) for path, value in before if current(path) != value]
            rest = f"All values are as before, except {', '.join(stuck)}" if stuck else "All values are as before"
            raise KernelError("\n- ".join([f"the kernel did not accept these values. {rest}.", *refused]))
        for path in self.stale_files():
            if self.files[path]:
                files.write(path, self.files[path])
            else:
                path.unlink()


def current(path: Path) -> str:
    """The kernel's value; of several choices, the active one. Raises OSError."""
    text = path.read_text(encoding="utf-8")
    choice = CHOICE.search(text)
    return choice[1] if choice else text.strip()


def _set(path: Path, value: str) -> str:
    """Write a value. Returns the kernel's error; empty on success."""
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        return error.strerror or str(error)
    return ""
