# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit of the node's agent, which probes the engines. Private to the collection; pure."""

from __future__ import annotations

from ...core.paths import Paths
from ...core.unit_files import sandbox, systemd_quote

WATCHDOG = 30
"""Seconds without a sign of life after which systemd restarts the agent. The agent sends a sign every 5 s."""

START_TIMEOUT = 30
"""Seconds within which the agent must listen, before systemd restarts it. The agent probes even before it listens."""

STOP_TIMEOUT = 10
"""Seconds for the agent's end. It only has to finish a write."""

_SANDBOX = sandbox(
    "The agent talks to engines, gateways, Docker, systemd and the journal, and writes verdicts. The two capabilities "
    "let it\nread /proc of another user's processes, to find the process that listens on an engine's port.",
    "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    f"{Paths().state} -{Paths().textfiles}",
)


def render(address: str, port: int) -> str:
    """The unit file. The agent depends on neither engines nor Docker: it must report when they are gone."""
    return f"""\
# Managed by the Ansible collection baremetal.inference.
[Unit]
Description=Health of the LLM inference engines
Wants=network-online.target
After=network-online.target
# However often the agent has failed, systemd starts it again: without the agent, gateways and recovery know nothing.
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
# For the agent's requests to recovery, and for its record of the answers to gateways.
RuntimeDirectory=inference/recover inference/gateways
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
# The agent must answer even if engines use all processors and memory.
CPUWeight=1000
OOMScoreAdjust=-900
MemoryMax=256M
{_SANDBOX}
[Install]
WantedBy=multi-user.target
"""
