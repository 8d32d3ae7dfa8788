# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of systemd units. Private to the collection; pure."""

from __future__ import annotations

_SANDBOX = """
# {why}
CapabilityBoundingSet={capabilities}
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={writable}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""


def sandbox(why: str, capabilities: str, writable: str) -> str:
    """What a process of the node tool may do, as lines of its unit. Source: systemd.exec(5)."""
    return _SANDBOX.format(why=why.replace("\n", "\n# "), capabilities=capabilities, writable=writable)


def systemd_quote(argument: str) -> str:
    """An argument as systemd's Exec lines want it (systemd.service(5): quoting, specifiers, variables)."""
    escaped = argument.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\")
    if argument and not any(character in argument for character in " \t\n\"';\\"):
        return escaped
    return '"' + escaped.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
