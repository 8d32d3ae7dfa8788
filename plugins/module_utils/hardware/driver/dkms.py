# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the output of ``dkms status``. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE = re.compile(
    r"(?P<name>[^\s,/:]+)(?:/|,\s*)(?P<version>[^\s,:]+)"
    r"(?:,\s*(?P<kernel>[^\s,]+),\s*(?P<arch>[^\s,:]+))?"
    r":\s*(?P<state>added|built|installed-weak|installed|broken)\b(?P<rest>.*)"
)
"""A line of ``dkms status``: NAME/VERSION, KERNEL, ARCHITECTURE: STATE (NOTE). DKMS 2 has a comma instead of the slash.
A module that is not built yet has no kernel. Source: do_status of /usr/sbin/dkms, 2.8.4, 3.0.10 and 3.2.2."""

HARMLESS = re.compile(r"original.modules? exists?", re.IGNORECASE)
"""The note that the kernel's own module of the same name was moved away. Every other note means that modules in the
kernel's directory are missing, or differ from the built ones."""

OTHERS = {"nvidia-fs"}
"""Modules with NVIDIA's name that do not belong to the driver: GPUDirect Storage."""


@dataclass(frozen=True)
class Module:
    """A version of a module, for one kernel or for none."""

    name: str
    version: str
    kernel: str | None
    arch: str | None
    state: str
    """The state by DKMS: added, built, installed, installed-weak or broken."""
    notes: tuple[str, ...] = ()

    @property
    def is_nvidia_driver(self) -> bool:
        """Whether the module is the driver's: nvidia from NVIDIA, or nvidia-current, nvidia-tesla-535 … from Debian."""
        return (self.name == "nvidia" or self.name.startswith("nvidia-")) and self.name not in OTHERS

    @property
    def is_open(self) -> bool | None:
        """Whether the module has the open flavour; None if the name does not show this, as for NVIDIA's packages."""
        return None if self.name == "nvidia" else self.name.endswith("-open")

    @property
    def doubt(self) -> str | None:
        """A warning of DKMS about an installed module; None if there is none."""
        return next((note for note in self.notes if not HARMLESS.search(note)), None)


def parse(output: str) -> list[Module]:
    """The modules of ``dkms status``, in its order. Other lines, such as errors, are left out."""
    found = []
    for line in output.splitlines():
        match = LINE.fullmatch(line.strip())
        if match:
            notes = tuple(re.findall(r"\(([^()]*)\)", match["rest"]))
            found.append(Module(match["name"], match["version"], match["kernel"], match["arch"], match["state"], notes))
    return found
