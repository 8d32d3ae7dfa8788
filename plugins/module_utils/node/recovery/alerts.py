# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells people that recovery has given up: webhook, mail, Alertmanager. Private to the collection."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from email.message import EmailMessage
from typing import Any

from ... import commands
from ...commands import Outcome
from .settings import Settings

SCHEMA = 1

SENT = "sent"

TIMEOUT = 10.0
"""Seconds for each channel."""

LARGEST_MAIL = 3500
"""Bytes: sendmail takes it on its standard input, which holds PIPE_BUF."""

Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Alert:
    """What is told, once for each opening of a breaker. Times are ISO 8601 in UTC."""

    host: str
    instance: str
    verdict: str
    reason: str
    since: str
    steps: Sequence[str]
    evidence: str

    @property
    def title(self) -> str:
        return f"{self.instance} on {self.host} is {self.verdict}, and recovery has given up"

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "event": "recovery-gave-up", "title": self.title, **asdict(self)}


def send(settings: Settings, alert: Alert, done: Mapping[str, str], run: Run = commands.run) -> dict[str, str]:
    """Send an alert by every channel that has not got it yet. Returns what came of each; raises nothing."""
    channels: dict[str, tuple[str, Callable[[], None]]] = {
        "webhook": (settings.webhook, lambda: _post(settings.webhook, alert.to_json())),
        "mail": (settings.mail_to, lambda: _mail(settings, alert, run)),
        "alertmanager": (settings.alertmanager, lambda: _post(_alerts_url(settings), [for_alertmanager(alert)])),
    }
    outcomes = {}
    for name, (address, act) in channels.items():
        if not address:
            continue
        outcomes[name] = done.get(name, "")
        if outcomes[name] != SENT:
            try:
                act()
                outcomes[name] = SENT
            except (OSError, ValueError) as error:
                # Neither the address, which may hold a secret, nor a page of HTML.
                outcomes[name] = f"failed: {getattr(error, 'reason', None) or error}"[:200].replace(address, "***")
    return outcomes


def for_alertmanager(alert: Alert) -> dict[str, Any]:
    """An alert as Alertmanager's API v2 takes it. Source: api/v2/openapi.yaml of prometheus/alertmanager."""
    return {
        "labels": {
            "alertname": "InferenceRecoveryGaveUp",
            "severity": "critical",
            # About the fleet: the drain that comes with it must not silence it. Labels as those of Prometheus' alerts.
            "scope": "fleet",
            "node": alert.host,
            "instance_name": alert.instance,
            "instance": alert.host,
            "name": alert.instance,
        },
        "annotations": {"summary": alert.title, "description": alert.reason},
        "startsAt": alert.since,
    }


def _alerts_url(settings: Settings) -> str:
    return f"{settings.alertmanager.rstrip('/')}/api/v2/alerts"


def _post(url: str, body: Any) -> None:
    """Raises OSError, of which urllib's errors are, and ValueError for an address that is none."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method="POST")
    if request.type not in ("http", "https"):
        raise ValueError("only http:// and https:// are known")
    try:
        # On a node there is nothing of Ansible's, its way to open an address neither.
        with urllib.request.build_opener().open(request, timeout=TIMEOUT):
            return
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}") from error


def _mail(settings: Settings, alert: Alert, run: Run) -> None:
    """By the machine's own sendmail, which every mail server of Debian brings. Raises OSError."""
    message = EmailMessage()
    message["To"] = settings.mail_to
    message["From"] = settings.mail_from or "root"
    message["Subject"] = alert.title
    lines = [alert.reason, "", f"since {alert.since}; evidence: {alert.evidence or 'none'}", "", *alert.steps]
    lines += ["", f"inferctl recover {alert.instance} --reset closes the breaker once the cause is gone."]
    message.set_content("\n".join(lines)[:LARGEST_MAIL])
    outcome = run(["sendmail", "-t", "-i"], TIMEOUT, stdin=message.as_string()[:4096])
    if outcome.failure or outcome.code:
        raise OSError(outcome.message or outcome.stderr.strip() or f"sendmail ended with {outcome.code}")
