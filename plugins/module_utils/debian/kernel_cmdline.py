# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters that GRUB starts the kernel with. Private to the collection."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..core import files

Find = Callable[[str], "str | None"]
"""Where a program is; None where it is not installed."""

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command; returns its exit status, output and errors."""

DROP_IN = Path("/etc/default/grub.d/50-inference.cfg")
MENU = Path("/boot/grub/grub.cfg")
CMDLINE = Path("/proc/cmdline")
HEADER = "# Managed by Ansible, module baremetal.inference.kernel_cmdline: changes made here are lost."
"""Names a module that no longer exists: with other text every node would get a new menu for nothing."""

KERNELS = "/etc/grub.d/10_linux"
"""The section of the menu with the installed kernels."""

PARAMETER = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/+@=-]*)?")
"""A parameter that needs no quotes, neither in a shell file nor on the command line."""

GATHERED = {"console", "earlycon", "hugepages", "hugepagesz", "module_blacklist", "pci"}
"""Names that may stand there several times, and all of them count. Source: kernel-parameters.txt of the kernel."""


class BootError(Exception):
    """The menu cannot be made; the text is for the operator."""


def render(parameters: list[str]) -> str:
    """The text of the file, empty where it is not wanted."""
    if not parameters:
        return ""
    return f'{HEADER}\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(parameters)}"\n'


def parameters_of(drop_in: str) -> list[str]:
    """The parameters that an earlier text of our file gave."""
    found = re.search(r'^GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX (.*)"$', drop_in, re.MULTILINE)
    return found[1].split() if found else []


def lacking(parameters: list[str], words: list[str]) -> list[str]:
    """The parameters that a command line does not have, as often as they are asked for."""
    return list((Counter(parameters) - Counter(words)).elements())


def overruled(parameters: list[str], words: list[str]) -> list[str]:
    """What a command line says against the parameters: of most names, the kernel takes the last."""
    asked = {parameter.split("=")[0]: parameter for parameter in parameters}
    last = {word.split("=")[0]: word for word in words}
    return [last[name] for name, word in asked.items() if name not in GATHERED and last.get(name, word) != word]


def kernel_lines(menu: str) -> list[list[str]]:
    """The command lines of Debian's own kernels, the rescue entries' among them.

    Memory tests, other systems and entries by hand have sections of their own. Source: /etc/grub.d/10_linux.
    """
    found = []
    section = ""
    for line in menu.splitlines():
        if line.startswith("### BEGIN "):
            section = line.split()[2]
        elif section == KERNELS and line.strip().startswith("linux"):
            found.append(line.split())
    return found


def in_menu(parameters: list[str], menu: str) -> bool:
    """Whether every kernel of a menu is started with every parameter."""
    lines = kernel_lines(menu)
    return bool(lines) and not any(lacking(parameters, words) for words in lines)


class Boot:
    """GRUB on this node."""

    def __init__(self, find: Find, run: Run) -> None:
        self.find, self.run = find, run

    def tools(self) -> dict[str, str]:
        """Where GRUB's programs are. Raises BootError where one is not installed."""
        found = {name: self.find(name) for name in ("grub-mkconfig", "grub-script-check")}
        absent = [name for name, path in found.items() if not path]
        if absent:
            raise BootError(f"there is a {MENU}, but no {' and no '.join(absent)}: install grub-common")
        return {name: path for name, path in found.items() if path}

    def renew(self, parameters: list[str], before: str) -> None:
        """Write the file and the menu. Raises BootError or OSError, with the old files in place."""
        tools = self.tools()
        new = MENU.with_name("grub.cfg.inference")
        try:
            _replace(render(parameters))
            self._run(tools["grub-mkconfig"], "-o", str(new))
            self._run(tools["grub-script-check"], str(new))
            if not in_menu(parameters, new.read_text(encoding="utf-8")):
                raise BootError(
                    f"the new menu does not hold {' '.join(parameters)}:"
                    " does another file of /etc/default/grub.d set GRUB_CMDLINE_LINUX later?"
                )
            new.chmod(MENU.stat().st_mode & 0o777)
            _to_disk(new)
            new.replace(MENU)
        except (BootError, OSError, UnicodeDecodeError):
            new.unlink(missing_ok=True)
            _replace(before)
            raise

    def _run(self, *command: str) -> None:
        code, output, words = self.run(list(command))
        if code:
            raise BootError(f"{' '.join(command)} failed ({code}), the old menu stays: {(words or output).strip()}")


def _to_disk(path: Path) -> None:
    """Before the old menu goes, or a power cut leaves a machine that does not boot."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _replace(text: str) -> None:
    if text:
        files.write(DROP_IN, text)
    else:
        DROP_IN.unlink(missing_ok=True)


class CommandLine:
    """The command line as declared, as GRUB's menu has it, and as the running kernel was started."""

    def __init__(self, parameters: list[str], boot: Boot) -> None:
        self.parameters, self.boot = parameters, boot
        self.before = _text(DROP_IN)
        self.after = render(parameters)
        self.menu = _text(MENU)
        self.changed = self.after != self.before or bool(parameters and not in_menu(parameters, self.menu))

    def problems(self) -> list[str]:
        """Why the command line cannot be set, as far as that is known before anything changes."""
        wrong = [item for item in self.parameters if not PARAMETER.fullmatch(item)]
        if wrong:
            return [f"{', '.join(map(repr, wrong))}: one parameter an item, without blanks or quotes"]
        if self.parameters and not self.menu:
            return [
                f"there is no {MENU}: this machine does not boot by GRUB. Set common_kernel_cmdline: [] here, and"
                " give the parameters to its own boot loader"
            ]
        try:
            if self.changed and self.menu:
                self.boot.tools()
        except BootError as error:
            return [str(error)]
        return []

    def apply(self) -> None:
        """Write the file and the menu where one differs. Raises BootError or OSError, with the old files in place."""
        if self.changed and self.menu:
            self.boot.renew(self.parameters, self.before)
            self.menu = _text(MENU)
        elif self.changed:
            _replace("")

    def against(self) -> list[str]:
        """What the menu says against the parameters."""
        return sorted({word for line in kernel_lines(self.menu) for word in overruled(self.parameters, line)})

    def missing(self) -> list[str]:
        """The parameters that the running kernel was not started with."""
        return lacking(self.parameters, _running())

    def surplus(self, applied: bool) -> list[str]:
        """The parameters that left the list, and that the running kernel was started with."""
        running = _running()
        gone = [item for item in lacking(parameters_of(self.before), self.parameters) if item in running]
        # Another file may set a parameter too. Only the new menu can show that.
        kept = {word for line in kernel_lines(self.menu) for word in line} if applied else set()
        return [item for item in gone if item not in kept]


def _text(path: Path) -> str:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    return ""


def _running() -> list[str]:
    return CMDLINE.read_text(encoding="utf-8").split()
