# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that gather metrics. Private to the collection; pure."""

from __future__ import annotations

from ...core.paths import METRICS_TEMPLATE, METRICS_TIMERS, Paths

INTERVALS = dict(zip(METRICS_TIMERS, (60, 300), strict=True))
"""Seconds between two rounds of each timer."""

GROUPS = {"node": ("state", "recovery", "gpus", "rdma"), "doctor": ("doctor",)}
"""The collectors that each timer runs, by the word after @ in its name: quick collectors, and the doctor."""

TIMEOUT = 180
"""Seconds for a round: four collectors that hang take 160 seconds."""

_HEADER = "# Managed by the Ansible collection baremetal.inference."


def render() -> dict[str, str]:
    """The text of each unit, by name."""
    return {
        METRICS_TEMPLATE: f"""\
{_HEADER}
[Unit]
Description=Metrics of the inference node (%i)
# Only a node_exporter reads the metrics.
ConditionPathIsDirectory={Paths().textfiles}

[Service]
Type=oneshot
ExecStart={Paths().command} metrics --publish %i
# The metrics report a collector that fails.
SuccessExitStatus=1
TimeoutStartSec={TIMEOUT}
LogLevelMax=notice
# Engines come first.
Nice=15
CPUWeight=10
IOSchedulingClass=idle
OOMScoreAdjust=500
# nvidia-smi may have to create its device files, so the sandbox allows devices.
ProtectSystem=strict
ReadWritePaths=-{Paths().textfiles}
ProtectHome=read-only
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
NoNewPrivileges=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
""",
        **{name: _timer(name) for name in METRICS_TIMERS},
    }


def _timer(name: str) -> str:
    seconds = INTERVALS[name]
    return f"""\
{_HEADER}
[Unit]
Description=Metrics of the inference node, every {seconds} s

[Timer]
OnActiveSec=5
OnUnitInactiveSec={seconds}
AccuracySec=5
# Nodes that boot at the same time then gather metrics at different times.
RandomizedDelaySec=5

[Install]
WantedBy=timers.target
"""
