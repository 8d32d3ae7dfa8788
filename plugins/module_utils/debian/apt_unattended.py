# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes APT's configuration for unattended upgrades, after a check. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core import files
from . import apt_pins

FILE = "apt.conf.d/52-inference"

HEADER = "// Managed by Ansible, module baremetal.inference.apt_packages: changes made here are lost.\n"

ORIGIN = re.compile(r'[a-z]+=[^",;\\=\n]+(,[a-z]+=[^",;\\=\n]+)*')
"""A pattern of origins, without characters that end a word. Source: comments of Debian's 50unattended-upgrades."""

ON = """\
APT::Periodic::Enable "1";
APT::Periodic::Update-Package-Lists "1";
APT::Periodic::Unattended-Upgrade "1";
APT::Periodic::AutocleanInterval "7";

// Instead of the package's own list, which has more than security in it.
#clear Unattended-Upgrade::Allowed-Origins;
#clear Unattended-Upgrade::Origins-Pattern;
Unattended-Upgrade::Origins-Pattern {{
{origins}}};

// A node reboots when an operator has drained it, and keeps the kernel that it could have to go back to.
Unattended-Upgrade::Automatic-Reboot "false";
Unattended-Upgrade::Automatic-Reboot-WithUsers "false";
Unattended-Upgrade::Remove-Unused-Kernel-Packages "false";
Unattended-Upgrade::Remove-Unused-Dependencies "false";
Unattended-Upgrade::Remove-New-Unused-Dependencies "false";
"""

OFF = 'APT::Periodic::Unattended-Upgrade "0";\n'


def mistakes(origins: Iterable[str]) -> list[str]:
    """Problems with the origins: a wrong file could break apt on the node."""
    return [
        f"common_unattended_upgrades_origins has {origin!r}: use KEY=VALUE[,KEY=VALUE], as"
        " origin=Debian,label=Debian-Security, with values that `apt-cache policy` shows"
        for origin in origins
        if not ORIGIN.fullmatch(origin)
    ]


def text(enabled: bool, origins: Sequence[str]) -> str:
    """The text of the file."""
    lines = "".join(f'        "{origin}";\n' for origin in origins)
    return HEADER + (ON.format(origins=lines) if enabled else OFF)


def apply(enabled: bool, origins: Sequence[str], check: bool) -> list[dict[str, str]]:
    """Write the file, except in check mode. Returns its diff; empty if the file does not change. Raises OSError."""
    path, wanted = apt_pins.ETC_APT / FILE, text(enabled, origins)
    if files.same(path, wanted) and files.own(path):
        return []
    before = apt_pins.read(path)
    if not check:
        apt_pins.write(path, wanted)
    return [{"before_header": str(path), "after_header": str(path), "before": before, "after": wanted}]
