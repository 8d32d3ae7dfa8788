# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets parameters on the kernel's command line, with GRUB. Private to the collection."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..core import files

Find = Callable[[str], "str | None"]
"""Returns the path of a program; None if it is not installed."""

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command; returns exit status, stdout and stderr."""

DROP_IN = Path("/etc/default/grub.d/50-inference.cfg")
MENU = Path("/boot/grub/grub.cfg")
CMDLINE = Path("/proc/cmdline")
HEADER = "# Managed by Ansible, module baremetal.inference.kernel_cmdline: changes made here are lost."
"""Names a module that no longer exists: with another text, every node would get a new menu without need."""

KERNELS = "/etc/grub.d/10_linux"
"""The section of the menu with the installed kernels."""

PARAMETER = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/+@=-]*)?")
"""A parameter that needs quotes neither in a shell file nor on the command line."""

GATHERED = {"console", "earlycon", "hugepages", "hugepagesz", "module_blacklist", "pci"}
"""Parameters that can occur several times, with all values used. Source: kernel-parameters.txt of the kernel."""


class BootError(Exception):
    """The menu cannot be written. The message says why."""


def render(parameters: list[str]) -> str:
    """The text of the drop-in; empty without parameters."""
    if not parameters:
        return ""
    return f'{HEADER}\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(parameters)}"\n'


def parameters_of(drop_in: str) -> list[str]:
    """The parameters in the text of an earlier drop-in."""
    found = re.search(r'^GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX (.*)"$', drop_in, re.MULTILINE)
    return found[1].split() if found else []


def lacking(parameters: list[str], words: list[str]) -> list[str]:
    """The parameters that a command line lacks. A parameter that is wanted twice must occur twice."""
    return list((Counter(parameters) - Counter(words)).elements())


def overruled(parameters: list[str], words: list[str]) -> list[str]:
    """The words of a command line that override the parameters: of most parameters, the kernel uses the last value."""
    asked = {parameter.split("=")[0]: parameter for parameter in parameters}
    last = {word.split("=")[0]: word for word in words}
    return [last[name] for name, word in asked.items() if name not in GATHERED and last.get(name, word) != word]


def kernel_lines(menu: str) -> list[list[str]]:
    """The command lines of Debian's kernels in a menu, including rescue entries.

    Memory tests, other systems and manual entries are in other sections. Source: /etc/grub.d/10_linux.
    """
    found = []
    section = ""
    for line in menu.splitlines():
        if line.startswith("### BEGIN "):
            section = line.removeprefix("### BEGIN ").partition(" ")[0]
        elif section == KERNELS and line.strip().startswith("linux"):
            found.append(line.split())
    return found


def in_menu(parameters: list[str], menu: str) -> bool:
    """Whether every kernel of a menu has every parameter."""
    lines = kernel_lines(menu)
    return bool(lines) and not any(lacking(parameters, words) for words in lines)


class Boot:
    """GRUB on this node."""

    def __init__(self, find: Find, run: Run) -> None:
        self.find, self.run = find, run

    def tools(self) -> dict[str, str]:
        """The paths of GRUB's programs, by name. Raises BootError if one is not installed."""
        found = {name: self.find(name) for name in ("grub-mkconfig", "grub-script-check")}
        absent = [name for name, path in found.items() if not path]
        if absent:
            raise BootError(f"{MENU} exists without the programs {' and '.join(absent)}: install grub-common")
        return {name: path for name, path in found.items() if path}

    def renew(self, parameters: list[str], before: str) -> None:
        """Write the drop-in and the menu. On an error, restores the old files, and raises BootError or OSError."""
        tools = self.tools()
        new = MENU.with_name("grub.cfg.inference")
        try:
            _replace(render(parameters))
            self._run(tools["grub-mkconfig"], "-o", str(new))
            self._run(tools["grub-script-check"], str(new))
            if not in_menu(parameters, _text(new)):
                raise BootError(
                    f"the new menu does not have {' '.join(parameters)}: find a file in /etc/default/grub.d that sets"
                    " GRUB_CMDLINE_LINUX later, and correct it"
                )
            new.chmod(MENU.stat().st_mode & 0o777)
            _to_disk(new)
            new.replace(MENU)
        except (BootError, OSError):
            new.unlink(missing_ok=True)
            _replace(before)
            raise

    def _run(self, *command: str) -> None:
        code, output, words = self.run(list(command))
        if code:
            raise BootError(f"{' '.join(command)} failed ({code}), the old menu stays: {(words or output).strip()}")


def _to_disk(path: Path) -> None:
    """Write a file to disk. Otherwise, a power cut after the old menu is replaced could leave no usable menu."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _replace(text: str) -> None:
    if text:
        files.write(DROP_IN, text)
    else:
        DROP_IN.unlink(missing_ok=True)


class CommandLine:
    """The declared command line, the one in GRUB's menu, and the one of the running kernel."""

    def __init__(self, parameters: list[str], boot: Boot) -> None:
        self.parameters, self.boot = parameters, boot
        self.before = _text(DROP_IN)
        self.after = render(parameters)
        self.menu = _text(MENU)
        self.changed = self.after != self.before or bool(parameters and not in_menu(parameters, self.menu))

    def problems(self) -> list[str]:
        """Problems that can be found before the first change."""
        wrong = [item for item in self.parameters if not PARAMETER.fullmatch(item)]
        if wrong:
            return [f"{', '.join(map(repr, wrong))}: must be one parameter per item, without blanks or quotes"]
        if self.parameters and not self.menu:
            return [
                f"there is no {MENU}: this machine does not boot with GRUB. Set common_kernel_cmdline: [] for this"
                " machine, and add the parameters to its own boot loader"
            ]
        try:
            if self.changed and self.menu:
                self.boot.tools()
        except BootError as error:
            return [str(error)]
        return []

    def apply(self) -> None:
        """Write the drop-in and the menu if one differs. On an error, restores the old files, and raises BootError or
        OSError."""
        if self.changed and self.menu:
            self.boot.renew(self.parameters, self.before)
            self.menu = _text(MENU)
        elif self.changed:
            _replace("")

    def against(self) -> list[str]:
        """The words in the menu that override the parameters."""
        return sorted({word for line in kernel_lines(self.menu) for word in overruled(self.parameters, line)})

    def missing(self) -> list[str]:
        """The parameters that the running kernel lacks."""
        return lacking(self.parameters, _running())

    def surplus(self, applied: bool) -> list[str]:
        """The parameters that were removed from the list, and that the running kernel still has."""
        running = _running()
        gone = [item for item in lacking(parameters_of(self.before), self.parameters) if item in running]
        # Another file may also set a parameter. Only the new menu shows this.
        kept = {word for line in kernel_lines(self.menu) for word in line} if applied else set()
        return [item for item in gone if item not in kept]


def _text(path: Path) -> str:
    """A file's text; empty if there is no file. A menu may have names of other systems in another encoding."""
    return files.text(path) or ""


def _running() -> list[str]:
    return CMDLINE.read_text(encoding="utf-8").split()
