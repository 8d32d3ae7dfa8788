# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts people when recovery has given up, by webhook, mail and Alertmanager. Private to the collection."""

from __future__ import annotations

import http.client
import json
import select
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from ...core import commands
from ...core.commands import Outcome
from ...engine.state.drains import format_time
from .settings import Settings

SCHEMA = 1

SENT = "sent"

TIMEOUT = 10.0
"""Limit for each channel, in seconds."""

LARGEST_MAIL = select.PIPE_BUF
"""Most bytes of a mail with its headers: what a command takes as input (core/commands.py)."""

CUT = 100
"""Characters by which the text of a mail is cut at a time, until the mail is short enough."""

ALERT_LIFETIME = timedelta(days=30)
"""How long an alert stays in Alertmanager, unless the breaker is closed before. Without an end, Alertmanager would
resolve the alert after resolve_timeout (5 minutes), since recovery sends it only once. Source: postAlertsHandler in
api/v2/api.go of prometheus/alertmanager."""

NO_ADDRESS = "it must be an http:// or https:// address with a host, without user, password or blanks"

SENDMAIL = (
    *("systemd-run", "--quiet", "--collect", "--pipe", "--wait", "--property=KillMode=process"),
    *("sendmail", "-t", "-i"),
)
"""The machine's own sendmail, which every mail server in Debian provides, in a unit of its own. Exim delivers in a
child process that outlives sendmail: the end of recovery's unit would kill this process, and the unit's limits would
block local delivery."""

Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Alert:
    """An alert, sent once for each opening of a breaker. Times are ISO 8601 in UTC."""

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


def unsent_channels(settings: Settings, done: Mapping[str, str]) -> list[str]:
    """The channels that are set but have not got the alert: sending failed or was cut off, or the channel was set
    later."""
    set_now = {"webhook": settings.webhook, "mail": settings.mail_to, "alertmanager": settings.alertmanager}
    return [name for name, address in set_now.items() if address and done.get(name) != SENT]


def send(
    settings: Settings, alert: Alert, done: Mapping[str, str], now: datetime, run: Run = commands.run
) -> dict[str, str]:
    """Send an alert by every channel that has not got it. Returns the outcome of each channel; raises nothing."""
    channels: dict[str, Callable[[], None]] = {
        "webhook": lambda: _post(settings.webhook, alert.to_json()),
        "mail": lambda: _mail(settings, alert, run),
        "alertmanager": lambda: _post(_alerts_url(settings), [for_alertmanager(alert, now + ALERT_LIFETIME)]),
    }
    outcomes = dict(done)
    for name in unsent_channels(settings, done):
        outcomes[name] = _outcome(channels[name])
    return outcomes


def resolve(settings: Settings, host: str, instance: str, since: str, now: datetime) -> str:
    """Resolve an alert in Alertmanager. Other channels keep no alerts. Returns the outcome; raises nothing."""
    words = f"the breaker of {instance} on {host} was closed"
    alert = for_alertmanager(Alert(host, instance, "", "", since, (), ""), now)
    alert["annotations"] = {"summary": words, "description": words}
    return _outcome(lambda: _post(_alerts_url(settings), [alert]))


def _outcome(send: Callable[[], None]) -> str:
    """The outcome of sending, as a short text."""
    try:
        send()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"failed: {getattr(error, 'reason', None) or str(error) or type(error).__name__}"[:200]
    return SENT


def for_alertmanager(alert: Alert, until: datetime) -> dict[str, Any]:
    """An alert in the form of Alertmanager's API v2. An alert whose end is past is resolved.

    Source: api/v2/openapi.yaml of prometheus/alertmanager.
    """
    return {
        "labels": {
            "alertname": "InferenceRecoveryGaveUp",
            "severity": "critical",
            # The scope is fleet, so that the alert of the instance's drain does not inhibit this alert.
            # Other labels are as in Prometheus.
            "scope": "fleet",
            "node": alert.host,
            "instance_name": alert.instance,
            "instance": alert.host,
            "name": alert.instance,
        },
        "annotations": {"summary": alert.title, "description": alert.reason},
        "startsAt": alert.since,
        "endsAt": format_time(until),
    }


def _alerts_url(settings: Settings) -> str:
    return f"{settings.alertmanager.rstrip('/')}/api/v2/alerts"


def usable(url: str) -> bool:
    """Whether an address can get alerts."""
    try:
        parts = urlsplit(url)
        # Reading a port that is no number raises ValueError.
        plain = parts.port is None or parts.port > 0
    except ValueError:
        return False
    blank = any(character.isspace() or not character.isprintable() for character in url)
    return (
        parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and plain and not blank
    )


def _post(url: str, body: Any) -> None:
    """Send JSON. Raises OSError, which includes urllib's errors, and HTTPException."""
    if not usable(url):
        raise OSError(NO_ADDRESS)
    try:
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        # Uses urllib, since a node does not have Ansible's open_url.
        with urllib.request.build_opener().open(request, timeout=TIMEOUT):
            return
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}") from error
    except (http.client.InvalidURL, ValueError) as error:
        # The error's message repeats the address, which may be a secret.
        raise OSError(NO_ADDRESS) from error


def _mail(settings: Settings, alert: Alert, run: Run) -> None:
    """Send a mail. Raises OSError."""
    message = EmailMessage()
    message["To"] = settings.mail_to
    message["From"] = settings.mail_from or "root"
    message["Subject"] = alert.title
    lines = [alert.reason, "", f"since {alert.since}; evidence: {alert.evidence or 'none'}", ""]
    # This line comes before the steps, which may be cut.
    lines += [f"inferctl recover {alert.instance} --reset closes the breaker once the cause is gone.", "", *alert.steps]
    text = "\n".join(lines)
    message.set_content(text)
    # Cuts the text, and not the encoded mail, in which characters beyond ASCII are longer.
    while text and len(message.as_bytes()) > LARGEST_MAIL:
        text = text[:-CUT]
        message.set_content(text)
    outcome = run([*SENDMAIL], TIMEOUT, stdin=message.as_string())
    if outcome.failure or outcome.code:
        raise OSError(outcome.message or outcome.stderr.strip() or f"sendmail ended with {outcome.code}")
