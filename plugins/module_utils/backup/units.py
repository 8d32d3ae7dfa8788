# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the backup. Private to the collection; pure."""

from __future__ import annotations

from dataclasses import dataclass

from . import repository
from .places import JOBS, Places, service, timer

_HEADER = "# Managed by the Ansible collection baremetal.inference."

_TEXTS = {
    "backup": "Backup of the node's configuration and state",
    "prune": "Retention of the node's backups",
    "check": "Check of the repository of backups",
}

_STAGING = """\
# In memory, and gone with the process, however it ends: the copy that is saved holds secrets.
RuntimeDirectory=inference-backup
RuntimeDirectoryMode=0700
"""


@dataclass(frozen=True)
class Limits:
    """When, and how much of the machine."""

    schedules: dict[str, str]
    """systemd.time(7) of each job; empty for never."""
    delay_minutes: int
    cpu_quota: str
    timeout_hours: int


def render(limits: Limits, address: str) -> dict[str, str]:
    """The text of each unit, by name; a job without a schedule has no timer."""
    texts = {service(job): _service(job, limits, address) for job in JOBS}
    for job in JOBS:
        if limits.schedules[job]:
            texts[timer(job)] = _timer(job, limits)
    return texts


def _service(job: str, limits: Limits, address: str) -> str:
    places = Places()
    parsed = repository.parse(address)
    writable = [str(places.work), f"-{places.metrics.parent}"]
    # One that is not there, or not mounted, is for the program to tell.
    writable += [f"-{address}"] if parsed.kind == repository.DIRECTORY else []
    quoted = " ".join(f'"{path}"' if " " in path else path for path in writable)
    staging = _STAGING if job == "backup" else ""
    return f"""\
{_HEADER}
[Unit]
Description={_TEXTS[job]}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart={places.command} {job}
TimeoutStartSec={limits.timeout_hours}h
{staging}CacheDirectory=inference-backup
CacheDirectoryMode=0700
UMask=0077
# Engines come first.
Nice=15
CPUWeight=10
CPUQuota={limits.cpu_quota}
IOSchedulingClass=idle
# It reads everything and writes next to nothing.
ProtectSystem=strict
ReadWritePaths={quoted}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
NoNewPrivileges=yes
RestrictRealtime=yes
RestrictNamespaces=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER CAP_FSETID
"""


def _timer(job: str, limits: Limits) -> str:
    return f"""\
{_HEADER}
[Unit]
Description={_TEXTS[job]}, by schedule

[Timer]
OnCalendar={limits.schedules[job]}
RandomizedDelaySec={limits.delay_minutes}min
# Each node at its own time, and always at that.
FixedRandomDelay=yes
# What was missed while the node was off, is done when it is back.
Persistent=yes

[Install]
WantedBy=timers.target
"""
