#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Kept because: ansible.posix.sysctl needs a task per key (40 ms CPU each), reads no value back and puts none back.
# Apart from kernel_cmdline, which waits for a reboot and has GRUB check its menu.

DOCUMENTATION = r"""
module: kernel_settings
short_description: Set values of the running kernel, and see that it took them
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets sysctls, hugepages, the policy for transparent hugepages and the CPU governor, now and at every boot, all in
    one call.
  - Every value is read back. One that the kernel did not take is an error that names what was asked and what was found;
    files and values are then as before.
  - Before anything is changed, every key that does not exist, that cannot be written, or that another file sets to
    another value at boot is named, all at once.
  - A key that is not declared any more leaves the files; its running value stays until the next boot.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Whether the kernel takes a value is only known by trying.
  diff_mode:
    support: full
options:
  sysctl:
    description:
      - Sysctls by name. Several numbers are written with blanks between them.
      - V(null) leaves one alone that O(sysctl_where_present) would set.
    type: dict
    default: {}
  sysctl_where_present:
    description: The same for those that not every kernel has, without IPv6 for one. O(sysctl) wins.
    type: dict
    default: {}
  hugepages:
    description: Number of hugepages by size, V(2M) or V(1G). No more than the memory that is free holds.
    type: dict
    default: {}
  transparent_hugepage:
    description: Policy for transparent hugepages. Empty leaves it alone.
    type: str
    choices: ["", always, madvise, never]
    default: ""
  cpu_governor:
    description: Governor of every CPU. Empty leaves it alone, and so does a machine without frequency scaling.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Reboot a machine that panics
  baremetal.inference.kernel_settings:
    sysctl:
      kernel.panic: 30
    transparent_hugepage: madvise
"""

RETURN = r"""
set:
  description: The values that were set, or would be in check mode, as C(name) and C(value).
  returned: success
  type: list
  elements: dict
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_settings as ks

ROOT = Path("/")
SYSCTL_FILE = "60-inference.conf"
GOVERNORS = "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

HUGEPAGES = "sys/kernel/mm/hugepages"

PAGE_KIB = {"2M": 2048, "1G": 1048576}
"""Sizes of hugepages on amd64, in KiB. Source: Documentation/admin-guide/mm/hugetlbpage.rst of the kernel."""

HUGEPAGES_HINT = ". Memory is in pieces: have the kernel take them at its start, by common_kernel_cmdline"


class KernelError(Exception):
    """A value cannot be set, or was not taken; the text is for the operator."""


def wanted_sysctls(params: dict[str, Any], root: Path) -> dict[str, Any]:
    """The sysctls that are asked for by name; a name may be written in two ways, and is one file."""
    wanted = {}
    for key, value in params["sysctl_where_present"].items():
        if (root / ks.sysctl_path(key)).is_file():
            wanted[ks.sysctl_path(key)] = (key, value)
    wanted |= {ks.sysctl_path(key): (key, value) for key, value in params["sysctl"].items()}
    return {key: value for key, value in wanted.values() if value is not None}


def mistakes(params: dict[str, Any]) -> list[str]:
    """What no kernel would take."""
    found = [ks.key_problem(key, value) for key, value in params["sysctl"].items() if value is not None]
    found += [
        f"hugepages of {size}: {count!r} cannot be; the sizes are {' and '.join(PAGE_KIB)}, with a number from 0"
        for size, count in params["hugepages"].items()
        if not _are_pages(size, count)
    ]
    return [problem for problem in found if problem]


def _are_pages(size: str, count: object) -> bool:
    return size in PAGE_KIB and str(count).isdecimal()


def settings_of(params: dict[str, Any], root: Path) -> tuple[list[ks.Setting], list[ks.Setting]]:
    """The sysctls and the other values that a module's parameters ask for, without its mistakes."""
    wanted = {key: value for key, value in wanted_sysctls(params, root).items() if not ks.key_problem(key, value)}
    sysctls = [ks.Setting(key, ks.sysctl_path(key), str(value).strip()) for key, value in wanted.items()]
    others = []
    for size, count in params["hugepages"].items():
        if not _are_pages(size, count):
            continue
        path = f"{HUGEPAGES}/hugepages-{PAGE_KIB[size]}kB/nr_hugepages"
        others.append(ks.Setting(f"hugepages of {size}", path, str(count)))
    if params["transparent_hugepage"]:
        path = "sys/kernel/mm/transparent_hugepage/enabled"
        others.append(ks.Setting("transparent_hugepage", path, params["transparent_hugepage"]))
    if params["cpu_governor"]:
        for file in sorted(root.glob(GOVERNORS)):
            name = f"governor of {file.parts[-3]}"
            others.append(ks.Setting(name, str(file.relative_to(root)), params["cpu_governor"]))
    return sysctls, others


class Kernel:
    """The running kernel and its files."""

    def __init__(self, root: Path, sysctls: list[ks.Setting], others: list[ks.Setting]) -> None:
        self.root = root
        self.sysctls = sysctls
        self.settings = [*sysctls, *others]
        wanted = {setting.name: setting.value for setting in sysctls}
        self.files = {
            root / "etc/sysctl.d" / SYSCTL_FILE: ks.sysctl_file(wanted) if wanted else "",
            root / "etc/tmpfiles.d/inference.conf": ks.tmpfiles_file(others) if others else "",
        }

    def problems(self) -> list[str]:
        """Everything that can be known before trying."""
        found = []
        unwritable = []
        for setting in self.settings:
            path = self.root / setting.path
            if not path.is_file():
                hint = ks.absent(self.root, setting.name) if setting in self.sysctls else ""
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
        return found + ks.overriding(self.root, SYSCTL_FILE, wanted)

    def _refused(self, setting: ks.Setting) -> list[str]:
        """What a kernel that may be written to says of one setting before it is tried."""
        path = self.root / setting.path
        if not os.access(path, os.W_OK):
            return [f"{setting.name}: this kernel lets nobody write /{setting.path}"]
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

    def differing(self) -> list[ks.Setting]:
        """The values that the kernel does not have yet."""
        return [setting for setting in self.settings if not self._matches(setting)]

    def _matches(self, setting: ks.Setting) -> bool:
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
        before = [
            (self.root / item.path, _current((self.root / item.path).read_text(encoding="utf-8"))) for item in differing
        ]
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
            stuck = [str(path) for path, value in before if _current(path.read_text(encoding="utf-8")) != value]
            rest = f"all are as before but {', '.join(stuck)}" if stuck else "all are as before"
            raise KernelError("\n- ".join([f"the kernel did not take these values; {rest}.", *refused]))
        for path in self.stale_files():
            if self.files[path]:
                files.write(path, self.files[path])
            else:
                path.unlink()


def _current(text: str) -> str:
    choice = ks.CHOICE.search(text)
    return choice[1] if choice else text.strip()


def _set(path: Path, value: str) -> str:
    """Write a value; returns the kernel's complaint, empty where it has none."""
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def diff_of(kernel: Kernel, differing: list[ks.Setting], stale: list[Path]) -> list[dict[str, str]]:
    """Before and after of the kernel's values, and of every file that changes."""
    changes = [
        (
            "kernel",
            "".join(f"{item.name} = {_current((kernel.root / item.path).read_text('utf-8'))}\n" for item in differing),
            "".join(f"{item.name} = {item.value}\n" for item in differing),
        )
    ]
    for path in stale:
        before = files.text(path) or ""
        changes.append((str(path), before, kernel.files[path]))
    return [
        {"before_header": name, "after_header": name, "before": before, "after": after}
        for name, before, after in changes
        if before != after
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sysctl": {"type": "dict", "default": {}},
            "sysctl_where_present": {"type": "dict", "default": {}},
            "hugepages": {"type": "dict", "default": {}},
            "transparent_hugepage": {"type": "str", "choices": ["", "always", "madvise", "never"], "default": ""},
            "cpu_governor": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    try:
        kernel = Kernel(ROOT, *settings_of(module.params, ROOT))
        problems = [*mistakes(module.params), *kernel.problems()]
        if problems:
            raise KernelError("\n- ".join(["nothing was changed.", *problems]))
        differing, stale = kernel.differing(), kernel.stale_files()
        diff = diff_of(kernel, differing, stale)
        if not module.check_mode:
            kernel.apply()
    except (KernelError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=f"kernel_settings: {error}")
    module.exit_json(
        changed=bool(differing or stale),
        set=[{"name": setting.name, "value": setting.value} for setting in differing],
        diff=diff,
    )


if __name__ == "__main__":
    main()
