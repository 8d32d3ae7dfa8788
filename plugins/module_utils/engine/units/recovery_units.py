# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the recovery. Private to the collection; pure."""

from __future__ import annotations

from ...core.paths import RECOVERY_DISPATCH, RECOVERY_PATH, RECOVERY_TEMPLATE, Paths

STEP_TIMEOUT = 900
"""Seconds for a step: Docker's restart, a stop and a reset of GPUs together take five minutes when everything hangs."""

_HEADER = "# Managed by the Ansible collection baremetal.inference."


def render() -> dict[str, str]:
    """The text of each unit, by name. No unit is bound to an engine or to Docker: recovery must work without both."""
    command, requests = Paths().command, Paths().recovery_requests
    return {
        RECOVERY_TEMPLATE: f"""\
{_HEADER}
[Unit]
Description=Recovery of the inference instance %i, one step
# The agent asks for recovery every 30 s while an engine is down. A breaker limits the number of steps.
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart={command} recover %i --triggered
TimeoutStartSec={STEP_TIMEOUT}
# Recovery restarts Docker and engines, and writes units. The sandbox denies only what recovery never needs.
NoNewPrivileges=yes
ProtectHome=read-only
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CPUWeight=1000
OOMScoreAdjust=-900
""",
        RECOVERY_DISPATCH: f"""\
{_HEADER}
[Unit]
Description=Starts the recovery of inference instances that the agent asks for
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart={command} recover --dispatch
TimeoutStartSec=60
""",
        RECOVERY_PATH: f"""\
{_HEADER}
[Unit]
Description=Waits for the agent to ask for the recovery of inference instances

[Path]
DirectoryNotEmpty={requests}
MakeDirectory=yes
DirectoryMode=0700

[Install]
WantedBy=multi-user.target
""",
    }
