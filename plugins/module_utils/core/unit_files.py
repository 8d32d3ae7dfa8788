# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of systemd units. Private to the collection; pure."""

from __future__ import annotations

_RESTRICTIONS = """\
{capabilities}NoNewPrivileges=yes
ProtectSystem=strict
{writable}ProtectHome={home}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
{kernel_logs}ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies={families}
RestrictNamespaces=yes
RestrictRealtime=yes
{set_ids}LockPersonality=yes
{calls}"""

_NETWORK = "AF_UNIX AF_INET AF_INET6"

# Not for jobs: the programs that a job starts may need these rights.
_CLOSED: dict[str, str] = {
    "kernel_logs": "ProtectKernelLogs=yes\n",
    "calls": "SystemCallArchitectures=native\nSystemCallFilter=@system-service\n",
}
_OPEN: dict[str, str] = {"kernel_logs": "", "set_ids": "", "calls": ""}


def sandbox(why: str, capabilities: str, writable: str) -> str:
    """Restrictions for a process of the node tool, as lines of its unit. Source: systemd.exec(5)."""
    restrictions = _RESTRICTIONS.format(
        capabilities=f"CapabilityBoundingSet={capabilities}\n",
        writable=f"ReadWritePaths={writable}\n",
        home="read-only",
        families=_NETWORK,
        set_ids="RestrictSUIDSGID=yes\n",
        **_CLOSED,
    )
    return "\n# " + why.replace("\n", "\n# ") + "\n" + restrictions


def dynamic_user_sandbox() -> str:
    """Restrictions for a service with DynamicUser=yes, as lines of its unit."""
    # DynamicUser implies RestrictSUIDSGID.
    return _RESTRICTIONS.format(
        capabilities="CapabilityBoundingSet=\n", writable="", home="yes", families=_NETWORK, set_ids="", **_CLOSED
    )


def job_sandbox(writable: str, families: str = _NETWORK, capabilities: str | None = None) -> str:
    """Restrictions for a job that starts other programs, as lines of its unit.

    These programs may use any system call, read the kernel's log, and set the bits of setuid and setgid. `families` are
    the kinds of sockets.
    Without `capabilities`, the job keeps all of them.
    """
    return _RESTRICTIONS.format(
        capabilities="" if capabilities is None else f"CapabilityBoundingSet={capabilities}\n",
        writable=f"ReadWritePaths={writable}\n",
        home="read-only",
        families=families,
        **_OPEN,
    )


def systemd_quote(argument: str) -> str:
    """Quote an argument for an Exec line of a unit (systemd.service(5): quoting, specifiers, variables)."""
    escaped = argument.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\")
    if argument and not any(character in argument for character in " \t\n\"';\\"):
        return escaped
    return '"' + escaped.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
