# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells people that recovery has given up: webhook, mail, Alertmanager. Private to the collection."""

from __future__ import annotations

import http.client
import json
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
"""Seconds for each channel."""

LARGEST_MAIL = 3500
"""Bytes: sendmail takes it on its standard input, which holds PIPE_BUF."""

ALERT_LIFETIME = timedelta(days=30)
"""For which an alert stands in Alertmanager, unless the breaker is closed before. Without an end it would resolve
itself after resolve_timeout (5 minutes), as recovery sends it only once. Source: postAlertsHandler in api/v2/api.go of
prometheus/alertmanager."""

NO_ADDRESS = "only http:// and https:// with a host are known, without user, password or blanks"

SENDMAIL = (
    *("systemd-run", "--quiet", "--collect", "--pipe", "--wait", "--property=KillMode=process"),
    *("sendmail", "-t", "-i"),
)
"""The machine's own, which every mail server of Debian brings; in a unit of its own. Exim delivers in a child that goes
on when sendmail has ended: the end of the recovery's unit would kill it, and its limits would keep mail from a home."""

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
    """The channels that are set and have not got an alert yet: it failed or was cut off, or one was set later."""
    set_now = {"webhook": settings.webhook, "mail": settings.mail_to, "alertmanager": settings.alertmanager}
    return [name for name, address in set_now.items() if address and done.get(name) != SENT]


def send(
    settings: Settings, alert: Alert, done: Mapping[str, str], now: datetime, run: Run = commands.run
) -> dict[str, str]:
    """Send an alert by every channel that has not got it yet. Returns what came of each; raises nothing."""
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
    """Take an alert back from Alertmanager, the only one that keeps it. Returns what came of it; raises nothing."""
    words = f"the breaker of {instance} on {host} was closed"
    alert = for_alertmanager(Alert(host, instance, "", "", since, (), ""), now)
    alert["annotations"] = {"summary": words, "description": words}
    return _outcome(lambda: _post(_alerts_url(settings), [alert]))


def _outcome(send: Callable[[], None]) -> str:
    """The outcome of an alert, in words: no page of HTML."""
    try:
        send()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"failed: {getattr(error, 'reason', None) or str(error) or type(error).__name__}"[:200]
    return SENT


def for_alertmanager(alert: Alert, until: datetime) -> dict[str, Any]:
    """An alert as Alertmanager's API v2 takes it; one whose end is past is resolved. Source: api/v2/openapi.yaml of
    prometheus/alertmanager."""
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
        "endsAt": format_time(until),
    }


def _alerts_url(settings: Settings) -> str:
    return f"{settings.alertmanager.rstrip('/')}/api/v2/alerts"


def usable(url: str) -> bool:
    """Whether an alert could be sent to an address."""
    try:
        parts = urlsplit(url)
        # Asking for a port that is no number raises.
        plain = parts.port is None or parts.port > 0
    except ValueError:
        return False
    blank = any(character.isspace() or not character.isprintable() for character in url)
    return (
        parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and plain and not blank
    )


def _post(url: str, body: Any) -> None:
    """Raises OSError, of which urllib's errors are, and HTTPException."""
    if not usable(url):
        raise OSError(NO_ADDRESS)
    try:
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        # On a node there is nothing of Ansible's, its way to open an address neither.
        with urllib.request.build_opener().open(request, timeout=TIMEOUT):
            return
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}") from error
    except (http.client.InvalidURL, ValueError) as error:
        # Their words repeat the address, which may hold a secret.
        raise OSError(NO_ADDRESS) from error


def _mail(settings: Settings, alert: Alert, run: Run) -> None:
    """Raises OSError."""
    message = EmailMessage()
    message["To"] = settings.mail_to
    message["From"] = settings.mail_from or "root"
    message["Subject"] = alert.title
    lines = [alert.reason, "", f"since {alert.since}; evidence: {alert.evidence or 'none'}", "", *alert.steps]
    lines += ["", f"inferctl recover {alert.instance} --reset closes the breaker once the cause is gone."]
    message.set_content("\n".join(lines)[:LARGEST_MAIL])
    outcome = run([*SENDMAIL], TIMEOUT, stdin=message.as_string()[:4096])
    if outcome.failure or outcome.code:
        raise OSError(outcome.message or outcome.stderr.strip() or f"sendmail ended with {outcome.code}")
