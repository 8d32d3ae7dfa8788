# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a node's settings for the running kernel and for its command line. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core.problems import Problem
from . import kernel_cmdline as kc
from . import kernel_settings as ks
from .node_settings import Change, Part, SettingsError


class Kernel(Part):
    """Values of the running kernel, now and at every boot."""

    def inspect(self) -> None:
        root = self.node.root
        self.kernel = ks.Kernel(root, *ks.settings_of(self.options, root))
        self.problems += [Problem("kernel", text) for text in (*ks.mistakes(self.options), *self.kernel.problems())]
        if self.problems:
            return
        for path in self.kernel.stale_files():
            before = path.read_text(encoding="utf-8") if path.exists() else None
            self.changes.append(Change(path, before, self.kernel.files[path] or None))
        for setting in self.kernel.differing():
            self.orders.append(f"{setting.name}: {ks.current(root / setting.path)} -> {setting.value}")

    def apply(self) -> None:
        try:
            self.kernel.apply()
        except ks.KernelError as error:
            raise SettingsError(str(error)) from error


class CommandLine(Part):
    """The kernel's command line."""

    def inspect(self) -> None:
        self.line = kc.CommandLine(self.options, kc.Boot(self.node.find, self.node.runner))
        self.problems += [Problem("cmdline", text) for text in self.line.problems()]
        if self.problems:
            return
        if self.line.before != self.line.after:
            self.changes.append(Change(Path(kc.DROP_IN), self.line.before or None, self.line.after or None))
        elif self.line.changed:
            self.orders.append("write the boot menu again, because it does not have the parameters")
        self.awaits += [f"the kernel runs without {word}" for word in self.line.missing()]
        self.awaits += [f"the kernel runs with {word}" for word in self.line.surplus(applied=False)]
        self.note_overrides()

    def note_overrides(self) -> None:
        """Add a note if the menu overrides the parameters."""
        against = " ".join(self.line.against())
        self.notes = (
            [
                f"the command line also has {against}, after common_kernel_cmdline, and the kernel uses the last value"
                " of a parameter: correct /etc/default/grub or /etc/default/grub.d"
            ]
            if against
            else []
        )

    def apply(self) -> None:
        try:
            self.line.apply()
        except kc.BootError as error:
            raise SettingsError(str(error)) from error
        self.note_overrides()
