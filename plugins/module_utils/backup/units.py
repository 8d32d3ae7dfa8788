# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services and timers of the backup jobs. Private to the collection; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.unit_files import job_sandbox
from . import repository
from .places import JOBS, Places, service, timer

_HEADER = "# Managed by the Ansible collection baremetal.inference."

_TEXTS = {
    "backup": "Backup of the host's configuration and state",
    "prune": "Retention of the host's backups",
    "check": "Check of the repository of backups",
}

_CAPABILITIES = "CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER CAP_FSETID"

_STAGING = """\
# The copy holds secrets: it lies in memory, and systemd removes it when the process ends.
RuntimeDirectory=inference-backup
RuntimeDirectoryMode=0700
"""


@dataclass(frozen=True)
class Limits:
    """Schedules and resource limits of the jobs."""

    schedules: dict[str, str]
    """Schedule of each job in the notation of systemd.time(7); empty for never."""
    delay_minutes: int
    cpu_quota: str
    timeout_hours: int


def render(limits: Limits, address: str) -> dict[str, str]:
    """The text of each unit, by unit name. A job without a schedule has no timer."""
    texts = {service(job): _service(job, limits, address) for job in JOBS}
    for job in JOBS:
        if limits.schedules[job]:
            texts[timer(job)] = _timer(job, limits)
    return texts


def _service(job: str, limits: Limits, address: str) -> str:
    places = Places()
    parsed = repository.parse(address)
    writable = [str(places.work), f"-{places.metrics.parent}"]
    # "-": a missing or unmounted directory does not stop the unit. The program reports it.
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
# Engines have priority.
Nice=15
CPUWeight=10
CPUQuota={limits.cpu_quota}
IOSchedulingClass=idle
# The job reads all files, and writes only to these directories.
{job_sandbox(quoted, capabilities=_CAPABILITIES)}"""


def _timer(job: str, limits: Limits) -> str:
    return f"""\
{_HEADER}
[Unit]
Description={_TEXTS[job]}, by schedule

[Timer]
OnCalendar={limits.schedules[job]}
RandomizedDelaySec={limits.delay_minutes}min
# Each host has its own delay, which stays the same.
FixedRandomDelay=yes
# A run that was missed while the host was off starts after the boot.
Persistent=yes

[Install]
WantedBy=timers.target
"""
