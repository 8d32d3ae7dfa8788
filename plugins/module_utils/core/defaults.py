# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults that more than one part needs, each once. Private to the collection; pure.

The role that owns a variable shows the same value to operators (defaults/main.yml). `make lint` compares the two, and
finds a third home. Playbooks read a value by the filter `site_default`.
"""

from __future__ import annotations

from collections.abc import Mapping

AGENT_PORT = 5004
PEER_PORT = 5003
GATEWAY_PORT = 8000
GATEWAY_METRICS_PORT = 8404
PROMETHEUS_PORT = 9090
ALERTMANAGER_PORT = 9093
NODE_EXPORTER_PORT = 9100
DCGM_EXPORTER_PORT = 9400

STORE_PATH = "/mnt/models"
CACHE_PATH = "/mnt/nvme/workspace/vllm_cache"
DOCKER_DATA_ROOT = "/var/lib/docker"
"""Docker's own default."""

DOCKER_CLIENT_CONFIG = "/root/.docker/config.json"
"""Where root's Docker client keeps its logins."""

USER = "inference"
"""The account that owns models and runs engines."""

KEEP_REVISIONS = 2
"""Revisions of a model that stay in the store."""

START_SECONDS = 1800
"""Time for an engine to load."""

DRAIN_SECONDS = 120
"""Time for an engine to end its requests when it stops."""

SWAP_DRAIN_SECONDS = 1800
"""Time for requests at work to end before a swap stops their engine."""

SWAP_WATCH_SECONDS = 60
"""Time that a release serves before the release counts as proven."""

SWAP_SPEED_BOUND = 0.5
"""Least share of the tokens per second of the release before, for one request alone."""

SWAP_WATCH_SPEED_BOUND = 0.25
"""The same under the clients' load."""

SWAP_ERROR_SHARE = 0.05
"""Largest share of the requests of a watched release that may fail."""

BY_VARIABLE: Mapping[str, int | float | str] = {
    "common_user": USER,
    "docker_client_config": DOCKER_CLIENT_CONFIG,
    "docker_data_root": DOCKER_DATA_ROOT,
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
"""The variable of the owning role, by which playbooks ask for the value."""
