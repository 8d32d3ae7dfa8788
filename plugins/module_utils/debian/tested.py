# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian releases on which services are tested. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core import files

RELEASES = ("12", "13")
"""Debian's major versions."""

OS_RELEASE = Path("/etc/os-release")


def refusal(what: str, package: str) -> str:
    """Why a service, which needs a Debian package, cannot run on this machine; empty if it can. Raises OSError."""
    lines = (files.text(OS_RELEASE) or "").splitlines()
    found = {name: value.strip('"') for name, _equals, value in (line.partition("=") for line in lines)}
    if found.get("ID") == "debian" and found.get("VERSION_ID") in RELEASES:
        return ""
    runs = found.get("PRETTY_NAME", "an unknown system")
    return f"this machine runs {runs}, but {what} needs {package} of Debian {' or '.join(RELEASES)}"
