# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults that several parts of the collection need. Private to the collection; pure.

The role that owns a variable has the same value in its defaults/main.yml, or an empty text. `make lint` compares both,
and finds further copies of paths and ports. Playbooks read these values with the filter `site_default`.
"""

from __future__ import annotations

from collections.abc import Mapping

AGENT_PORT = 5004
PEER_PORT = 5003
GATEWAY_PORT = 8000
GATEWAY_METRICS_PORT = 8404
GATEWAY_HOLD_SECONDS = 120
PROMETHEUS_PORT = 9090
ALERTMANAGER_PORT = 9093
NODE_EXPORTER_PORT = 9100
DCGM_EXPORTER_PORT = 9400

STORE_PATH = "/mnt/models"
CACHE_PATH = "/mnt/nvme/workspace/vllm_cache"
DOCKER_DATA_ROOT = "/var/lib/docker"
"""Same as Docker's own default."""

DOCKER_CLIENT_CONFIG = "/root/.docker/config.json"
"""The file in which root's Docker client stores logins."""

USER = "inference"
"""The account that owns models and runs engines."""

KEEP_REVISIONS = 2
"""Number of revisions of a model to keep in the store."""

START_SECONDS = 1800
"""Seconds that an engine may take to load."""

DRAIN_SECONDS = 120
"""Seconds that an engine's requests in flight may take when the engine stops."""

SWAP_DRAIN_SECONDS = 1800
"""Seconds that requests in flight may take before a swap stops their engine."""

SWAP_WATCH_SECONDS = 60
"""Seconds that a release must serve before it counts as proven."""

SWAP_SPEED_BOUND = 0.5
"""Least tokens per second for a single request, as a share of the previous release's."""

SWAP_WATCH_SPEED_BOUND = 0.25
"""Least tokens per second under the clients' load, as a share of the previous release's."""

SWAP_ERROR_SHARE = 0.05
"""Largest share of failed requests that a release may have while it is watched."""

BY_VARIABLE: Mapping[str, int | float | str] = {
    "common_user": USER,
    "docker_client_config": DOCKER_CLIENT_CONFIG,
    "docker_data_root": DOCKER_DATA_ROOT,
    "gateway_hold_seconds": GATEWAY_HOLD_SECONDS,
    "gateway_metrics_port": GATEWAY_METRICS_PORT,
    "gateway_port": GATEWAY_PORT,
    "model_store_keep": KEEP_REVISIONS,
    "model_store_path": STORE_PATH,
    "model_store_peer_port": PEER_PORT,
    "monitoring_alertmanager_port": ALERTMANAGER_PORT,
    "monitoring_dcgm_exporter_port": DCGM_EXPORTER_PORT,
    "monitoring_node_exporter_port": NODE_EXPORTER_PORT,
    "monitoring_port": PROMETHEUS_PORT,
    "update_drain_seconds": SWAP_DRAIN_SECONDS,
    "update_error_share": SWAP_ERROR_SHARE,
    "update_speed_bound": SWAP_SPEED_BOUND,
    "update_watch_seconds": SWAP_WATCH_SECONDS,
    "update_watch_speed_bound": SWAP_WATCH_SPEED_BOUND,
    "vllm_agent_port": AGENT_PORT,
    "vllm_cache_path": CACHE_PATH,
    "vllm_drain_timeout": DRAIN_SECONDS,
    "vllm_start_timeout": START_SECONDS,
}
"""The values by variable of the owning role. Playbooks read them by this name."""
