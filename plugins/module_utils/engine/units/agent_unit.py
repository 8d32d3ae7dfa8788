# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit of the node's agent, which probes the engines. Private to the collection; pure."""

from __future__ import annotations

from ...core.paths import Paths
from ...core.unit_files import sandbox, systemd_quote

WATCHDOG = 30
"""Seconds without a sign of life until systemd starts the agent anew; it gives one every 5 s."""

START_TIMEOUT = 30
"""Seconds in which it must be able to listen. It probes from its first second on, and tries again for ever."""

STOP_TIMEOUT = 10
"""Seconds: it has nothing to finish but a last write."""

_SANDBOX = sandbox(
    "It speaks to engines, gateways, Docker, systemd and the journal, and writes its findings. To tell whose process "
    "listens\non an engine's port, it looks into /proc of another user: those two capabilities.",
    "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    f"{Paths().state} -{Paths().textfiles}",
)


def render(address: str, port: int) -> str:
    """The unit file. It is bound to no engine and to no Docker: it must outlive them to say that they are gone."""
    return f"""\
# Managed by the Ansible collection baremetal.inference.
[Unit]
Description=Health of the LLM inference engines
Wants=network-online.target
After=network-online.target
# Never give up: a silent prober is worse than a noisy one.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={Paths().command} agent --address {systemd_quote(address)} --port {port}
Restart=always
RestartSec=2
WatchdogSec={WATCHDOG}
TimeoutStartSec={START_TIMEOUT}
TimeoutStopSec={STOP_TIMEOUT}
# Where it asks for a recovery, and where it writes what gateways were answered.
RuntimeDirectory=inference/recover inference/gateways
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
# Heard on a node whose processors and memory its engines have taken.
CPUWeight=1000
OOMScoreAdjust=-900
MemoryMax=256M
{_SANDBOX}
[Install]
WantedBy=multi-user.target
"""
