# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Prometheus and Alertmanager. Private to the collection; pure.

For Debian 12 and 13: Prometheus 2.42 and 2.53, Alertmanager 0.25 and 0.28. The configuration
names this collection's files by relative paths, so that all can be checked together in another directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .settings import INTERNAL_USER, Settings
from .targets import JOBS

RULES = "rules"
TARGETS = "targets"
PASSWORD = "password"
"""The file with the internal user's password."""

NOBODY = "nobody"
"""The receiver that sends nothing."""

HEARTBEAT = "heartbeat"
"""The receiver for the heartbeat, and the name of the file with its rule, without suffix. A service outside alerts
people when the heartbeat stops."""
HEARTBEAT_ALERT = "MonitoringHeartbeat"

# These alerts inhibit others that have the same cause. A drained instance is out of service on purpose. On a node in
# maintenance, every service may be stopped, also HAProxy. But what a gateway reports of requests and replica sets may
# have other causes, so its scope is neither instance nor node. Each rule gives its alert the label `scope`.
INHIBIT_RULES: tuple[Mapping[str, Any], ...] = (
    {
        "source_matchers": ['alertname="InstanceDrained"'],
        "target_matchers": ['severity=~"warning|critical"', 'scope="instance"'],
        "equal": ["node", "instance_name"],
    },
    {
        "source_matchers": ['alertname="NodeInMaintenance"'],
        "target_matchers": ['scope=~"instance|node"'],
        "equal": ["node"],
    },
    {
        "source_matchers": ['alertname="NodeInMaintenance"'],
        "target_matchers": ['alertname="GatewayDown"'],
        "equal": ["node"],
    },
)


ENGINE_SECONDS = 10
"""The least time between two scrapes of an engine.

Prometheus keeps its connection open, and the engine closes a connection that was idle for 5 s (vLLM,
VLLM_HTTP_TIMEOUT_KEEP_ALIVE). With shorter times the connection stays, and a drained engine never is without clients.
"""


def prometheus(settings: Settings, rules: Iterable[str]) -> dict[str, Any]:
    """prometheus.yml."""
    document: dict[str, Any] = {
        "global": {
            "scrape_interval": f"{settings.scrape_seconds}s",
            "scrape_timeout": f"{min(settings.scrape_seconds, 10)}s",
            "evaluation_interval": f"{settings.scrape_seconds}s",
        },
        "rule_files": [f"{RULES}/{name}" for name in sorted(rules)],
        "alerting": {
            "alertmanagers": [
                {
                    **_access(settings),
                    "static_configs": [{"targets": [f"{settings.asked_at}:{settings.alertmanager_port}"]}],
                }
            ]
        },
        "scrape_configs": [*(_job(job, settings) for job in JOBS), *settings.scrape_configs],
    }
    if settings.external_labels:
        document["global"]["external_labels"] = dict(settings.external_labels)
    if settings.remote_write:
        document["remote_write"] = list(settings.remote_write)
    return document


def scrape_configs() -> list[dict[str, Any]]:
    """The jobs for a Prometheus elsewhere, without those by which our Prometheus monitors itself and its
    Alertmanager."""
    return [_plain(job) for job in JOBS if job not in ("prometheus", "alertmanager")]


def _plain(job: str) -> dict[str, Any]:
    return {"job_name": job, "file_sd_configs": [{"files": [f"{TARGETS}/{job}.json"]}]}


def _job(job: str, settings: Settings) -> dict[str, Any]:
    found = _plain(job)
    if job in ("prometheus", "alertmanager"):
        found.update(_access(settings))
    if job == "engine" and settings.scrape_seconds < ENGINE_SECONDS:
        found["scrape_interval"] = f"{ENGINE_SECONDS}s"
    return found


def _access(settings: Settings) -> dict[str, Any]:
    """How Prometheus reaches itself and its Alertmanager."""
    found: dict[str, Any] = {}
    if settings.tls:
        # The certificate has the name that people use. This connection stays on the machine.
        found = {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
    if settings.users:
        found["basic_auth"] = {"username": INTERNAL_USER, "password_file": PASSWORD}
    return found


def alertmanager(settings: Settings) -> dict[str, Any]:
    """alertmanager.yml. The first receiver gets every alert without a route of the site, except the heartbeat and
    alerts of severity info."""
    quiet = {"matchers": ['severity="info"'], "receiver": NOBODY}
    first = str(settings.receivers[0]["name"]) if settings.receivers else NOBODY
    document: dict[str, Any] = {
        "route": {
            "receiver": first,
            "group_by": ["alertname", "node"],
            "group_wait": f"{settings.group_wait_seconds}s",
            "group_interval": f"{settings.group_interval_seconds}s",
            "repeat_interval": f"{settings.repeat_hours}h",
            "routes": [*_heartbeat_route(settings), *settings.routes, quiet],
        },
        "inhibit_rules": [dict(rule) for rule in INHIBIT_RULES],
        "receivers": [{"name": NOBODY}, *_heartbeat_receiver(settings), *settings.receivers],
    }
    if settings.alertmanager_global:
        document["global"] = dict(settings.alertmanager_global)
    return document


def heartbeat_rules(settings: Settings) -> dict[str, Any]:
    """The rule of the heartbeat, which always fires; empty if there is no heartbeat_url."""
    if not settings.heartbeat_url:
        return {}
    alert = {
        "alert": HEARTBEAT_ALERT,
        "expr": "vector(1)",
        # No page shows this severity.
        "labels": {"severity": "none", "scope": "fleet"},
        "annotations": {"summary": "Prometheus evaluates rules, and Alertmanager delivers."},
    }
    return {"groups": [{"name": HEARTBEAT, "rules": [alert]}]}


def _heartbeat_route(settings: Settings) -> list[dict[str, Any]]:
    """The heartbeat repeats 30 s before its period ends:
    with the full period, a tick of the group could come too early."""
    if not settings.heartbeat_url:
        return []
    return [
        {
            "matchers": [f'alertname="{HEARTBEAT_ALERT}"'],
            "receiver": HEARTBEAT,
            "group_wait": "0s",
            "group_interval": "1m",
            "repeat_interval": f"{settings.heartbeat_minutes * 60 - 30}s",
        }
    ]


def _heartbeat_receiver(settings: Settings) -> list[dict[str, Any]]:
    if not settings.heartbeat_url:
        return []
    return [{"name": HEARTBEAT, "webhook_configs": [{"url": settings.heartbeat_url, "send_resolved": False}]}]


def web(settings: Settings) -> dict[str, Any]:
    """web.yml of both services, without the users, whose hashes the host makes. Empty without TLS."""
    if not settings.tls:
        return {}
    return {"tls_server_config": {"cert_file": settings.tls_certificate, "key_file": settings.tls_key}}
