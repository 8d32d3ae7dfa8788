# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that renew and hand over the gateway's certificate. Private to the collection; pure."""

from __future__ import annotations

from ..core.paths import Paths
from ..core.unit_files import job_sandbox
from .places import CERTIFICATE_COMMAND, CERTIFICATE_TIMER, CERTIFICATE_UNIT, TLS

_HEADER = "# Managed by the Ansible collection baremetal.inference."


def render() -> dict[str, str]:
    """The text of each unit, by name."""
    return {
        CERTIFICATE_UNIT: f"""\
{_HEADER}
[Unit]
Description=Renewal of the gateway's certificate
After=haproxy.service time-sync.target

[Service]
Type=oneshot
ExecStart={CERTIFICATE_COMMAND} update
TimeoutStartSec=300
UMask=0077
{job_sandbox(f"{TLS} -{Paths().textfiles}", families="AF_UNIX")}""",
        CERTIFICATE_TIMER: f"""\
{_HEADER}
[Unit]
Description=Renewal of the gateway's certificate, every hour

[Timer]
OnCalendar=hourly
RandomizedDelaySec=600
Persistent=yes

[Install]
WantedBy=timers.target
""",
    }
