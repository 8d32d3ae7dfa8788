# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that pin packages, as the module apt_pins writes them and apt_packages foresees them. Private to the
collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ETC_APT = Path("/etc/apt")
PREFERENCES = ETC_APT / "preferences.d"
HEADER = "Managed by Ansible, module baremetal.inference.apt_pins: changes made here are lost."


ITEM = re.compile(r'^ +"\^(.*)\$";$', re.M)
"""A line of a blacklist that the module wrote."""


def file_name(name: str) -> str:
    """The name of every file of a set of pins."""
    return f"52-{name}"


def held_patterns(name: str) -> list[str]:
    """The packages that a set of pins holds, with * as a wildcard; empty where there is no such set. Raises OSError."""
    path = ETC_APT / "apt.conf.d" / file_name(name)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [item.replace(".*", "*").replace("\\", "") for item in ITEM.findall(text)] if HEADER in text else []


def preferences(pinned: Sequence[str], version: str, versions: Mapping[str, str] | None = None) -> str:
    """The text that pins, empty where nothing is pinned; above 1000, so that a downgrade is meant too.

    Whatever order the packages come in, it is the same text.
    """
    pins = [(" ".join(sorted(pinned)), version)] if pinned else []
    stanzas = [
        f"Package: {packages}\nPin: version {wanted}\nPin-Priority: 1001\n"
        for packages, wanted in [*pins, *sorted((versions or {}).items())]
    ]
    return "\n".join([f"# {HEADER}\n{stanzas[0]}", *stanzas[1:]]) if stanzas else ""
