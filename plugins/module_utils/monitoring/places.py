# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths and units of monitoring on a host, and which of them are ours. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core.paths import Paths

PROMETHEUS = "prometheus.service"
ALERTMANAGER = "prometheus-alertmanager.service"

HEADER = "# Managed by Ansible, role baremetal.inference.monitoring: changes made here are lost."

DIRECTORY = Path("/etc/prometheus")

OWNED = {"prometheus.yml": "prometheus", "alertmanager.yml": "prometheus-alertmanager"}
"""Configurations that come with a package, by file name, and that package."""

UNITS = Path("/etc/systemd/system")

DROP_IN = "inference.conf"
"""The name of our drop-in in the directory UNIT.d."""

STATE = Paths().monitoring
"""The record of what the running services have loaded. With it, the next run does the reload that an
interrupted run has not done."""

SAMPLES = Path("/var/lib/prometheus/metrics2")
SILENCES = Path("/var/lib/prometheus/alertmanager")
"""The data that both services have gathered. No file of ours lies there."""

LOG_CONFIG = Paths().etc / "logs.conf"
LOG_STATE = "inference-logs"
"""The directory with the state of log shipping, below each of LOG_STATES."""
LOG_STATES = (Path("/var/lib/private"), Path("/var/lib"))
"""With DynamicUser=, systemd keeps the state below the first directory, and a link to the state below the second."""
LOG_UNIT = "inference-logs.service"
LOG_CHECK = ("inference-logs-check.service", "inference-logs-check.timer")
"""Log shipping, and the service and timer of its check."""
