# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of swaps: one leads a swap, one closes gates at boot. Private to the collection."""

from __future__ import annotations

from ...core.paths import GATES_UNIT, SWAP_TEMPLATE, Paths

RESTART_SECONDS = 2
"""Seconds after which systemd restarts a swap that has died. Before it exits, a process that has failed also waits,
longer with each restart."""

_HEADER = "# Managed by the Ansible collection baremetal.inference."


def render() -> dict[str, str]:
    """The text of each unit, by name. None is bound to an engine or to Docker: a swap outlives both."""
    command = Paths().command
    return {
        SWAP_TEMPLATE: f"""\
{_HEADER}
[Unit]
Description=Swap of the inference instance %i
After=docker.service inference-agent.service {GATES_UNIT}
# A swap must end, with the new release or the release before. So systemd restarts it after any number of failures.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command} perform-swap %i
Restart=on-failure
RestartSec={RESTART_SECONDS}
# Nothing is lost by a kill: the next process takes the same step again.
TimeoutStopSec=5
# A swap restarts engines, writes units and changes the firewall. The sandbox denies only what a swap never needs.
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
        GATES_UNIT: f"""\
{_HEADER}
[Unit]
Description=Closes the gates of inference instances whose swap was cut off, and goes on with the swaps
# Before the first engine starts: gateways may still believe that it serves.
DefaultDependencies=no
After=local-fs.target nftables.service
Before=docker.service inference.target
ConditionDirectoryNotEmpty={Paths().swap("x").parent}

[Service]
Type=oneshot
ExecStart={command} resume-swaps
TimeoutStartSec=60

[Install]
WantedBy=multi-user.target
""",
    }
