# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What DKMS says of the modules that it builds. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE = re.compile(
    r"(?P<name>[^\s,/:]+)(?:/|,\s*)(?P<version>[^\s,:]+)"
    r"(?:,\s*(?P<kernel>[^\s,]+),\s*(?P<arch>[^\s,:]+))?"
    r":\s*(?P<state>added|built|installed-weak|installed|broken)\b(?P<rest>.*)"
)
"""A line of ``dkms status``: NAME/VERSION, KERNEL, ARCHITECTURE: STATE (NOTE). DKMS 2 has a comma for the slash; a
module that is built for no kernel has no kernel. Source: do_status of /usr/sbin/dkms, 2.8.4, 3.0.10 and 3.2.2."""

HARMLESS = re.compile(r"original.modules? exists?", re.IGNORECASE)
"""The note that the kernel brought a module of the same name, which was put aside. Every other note says that the
modules in the kernel's directory are missing, or are not the ones that were built."""

OTHERS = {"nvidia-fs"}
"""Modules with NVIDIA's name that are not the driver: GPUDirect Storage."""


@dataclass(frozen=True)
class Module:
    """A version of a module, for one kernel or for none."""

    name: str
    version: str
    kernel: str | None
    arch: str | None
    state: str
    """added, built, installed, installed-weak or broken, as DKMS says it."""
    notes: tuple[str, ...] = ()

    @property
    def is_nvidia_driver(self) -> bool:
        """nvidia of NVIDIA's packages and its installer, nvidia-current and nvidia-tesla-535 of Debian's, -open too."""
        return (self.name == "nvidia" or self.name.startswith("nvidia-")) and self.name not in OTHERS

    @property
    def is_open(self) -> bool | None:
        """Whether it is the open flavour; None where the name does not tell, as for NVIDIA's own packages."""
        return None if self.name == "nvidia" else self.name.endswith("-open")

    @property
    def doubt(self) -> str | None:
        """Why an installed module is not to be trusted; None where DKMS has nothing against it."""
        return next((note for note in self.notes if not HARMLESS.search(note)), None)


def parse(output: str) -> list[Module]:
    """The modules of ``dkms status``, in its order. Lines that say something else, such as errors, are left out."""
    found = []
    for line in output.splitlines():
        match = LINE.fullmatch(line.strip())
        if match:
            notes = tuple(re.findall(r"\(([^()]*)\)", match["rest"]))
            found.append(Module(match["name"], match["version"], match["kernel"], match["arch"], match["state"], notes))
    return found
