# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of systemd units. Private to the collection; pure."""

from __future__ import annotations

_RESTRICTIONS = """\
CapabilityBoundingSet={capabilities}
NoNewPrivileges=yes
ProtectSystem=strict
{writable}ProtectHome={home}
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
{set_ids}LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""


def sandbox(why: str, capabilities: str, writable: str) -> str:
    """Restrictions for a process of the node tool, as lines of its unit. Source: systemd.exec(5)."""
    restrictions = _RESTRICTIONS.format(
        capabilities=capabilities,
        writable=f"ReadWritePaths={writable}\n",
        home="read-only",
        set_ids="RestrictSUIDSGID=yes\n",
    )
    return "\n# " + why.replace("\n", "\n# ") + "\n" + restrictions


def dynamic_user_sandbox() -> str:
    """Restrictions for a service with DynamicUser=yes, as lines of its unit. Only its StateDirectory is writable."""
    # DynamicUser implies RestrictSUIDSGID.
    return _RESTRICTIONS.format(capabilities="", writable="", home="yes", set_ids="")


def systemd_quote(argument: str) -> str:
    """Quote an argument for an Exec line of a unit (systemd.service(5): quoting, specifiers, variables)."""
    escaped = argument.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\")
    if argument and not any(character in argument for character in " \t\n\"';\\"):
        return escaped
    return '"' + escaped.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
