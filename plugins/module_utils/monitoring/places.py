# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Prometheus and Alertmanager lie on a monitoring host, and what of it is ours. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core.paths import Paths

PROMETHEUS = "prometheus.service"
ALERTMANAGER = "prometheus-alertmanager.service"

HEADER = "# Managed by Ansible, role baremetal.inference.monitoring: changes made here are lost."

DIRECTORY = Path("/etc/prometheus")

OWNED = {"prometheus.yml": "prometheus", "alertmanager.yml": "prometheus-alertmanager"}
"""Configurations that a package brings, and the package."""

UNITS = Path("/etc/systemd/system")

DROP_IN = "inference.conf"
"""Beside a unit, in its directory."""

STATE = Paths().monitoring
"""What the running services have loaded: what a run that was cut off has not reloaded, the next one does."""

SAMPLES = Path("/var/lib/prometheus/metrics2")
SILENCES = Path("/var/lib/prometheus/alertmanager")
"""What both have gathered; no file of ours is among it."""

LOG_CONFIG = Paths().etc / "logs.conf"
LOG_STATE = "inference-logs"
"""The directory of log shipping's own state, below each of LOG_STATES."""
LOG_STATES = (Path("/var/lib/private"), Path("/var/lib"))
"""Where systemd keeps the state of a service with a user of its own, and where it has a link to it."""
LOG_UNIT = "inference-logs.service"
LOG_CHECK = ("inference-logs-check.service", "inference-logs-check.timer")
"""Log shipping, and the service and timer of its check."""
