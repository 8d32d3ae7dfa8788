# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts by webhook, mail and Alertmanager: each once, and without secrets."""

from __future__ import annotations

import email
import email.message
import email.policy
import http.server
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    alerts,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings

from .conftest import NOW


class Receiver(http.server.BaseHTTPRequestHandler):
    got: list[tuple[str, Any]]
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).got.append((self.path, json.loads(body)))
        self.send_response(type(self).status)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[type[Receiver]]:
    handler = type("OneReceiver", (Receiver,), {"got": [], "status": 200})
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield handler
    server.shutdown()
    server.server_close()


ALERT = alerts.Alert("gpu7", "main", "hung", "3 faults", "2026-05-04T03:00:00Z", ["one step"], "/var/x")


def test_every_channel_gets_an_alert_once(receiver: Any, tmp_path: Path) -> None:
    mails = []

    def run(command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        mails.append((command, stdin))
        return Outcome(0)

    given = Settings(webhook=f"{receiver.url}/hook?key=hidden", mail_to="ops@example.org", alertmanager=receiver.url)
    sent = alerts.send(given, ALERT, {}, NOW, run)
    assert sent == {"webhook": "sent", "mail": "sent", "alertmanager": "sent"}
    assert alerts.send(given, ALERT, sent, NOW, run) == sent
    assert [path for path, _body in receiver.got] == ["/hook?key=hidden", "/api/v2/alerts"]
    hook, manager = (body for _path, body in receiver.got)
    assert (hook["instance"], hook["verdict"], hook["event"]) == ("main", "hung", "recovery-gave-up")
    assert manager[0]["labels"]["alertname"] == "InferenceRecoveryGaveUp"
    assert manager[0]["labels"]["scope"] == "fleet" and manager[0]["labels"]["instance_name"] == "main"
    # Recovery sends the alert only once, so the alert must not end by itself after minutes.
    assert manager[0]["startsAt"] == ALERT.since and manager[0]["endsAt"] == "2026-06-03T03:00:00Z"
    ((command, mail),) = mails
    # sendmail runs in its own unit, since the process that delivers the mail outlives the step.
    assert command[:2] == ["systemd-run", "--quiet"] and "--property=KillMode=process" in command
    assert command[-3:] == ["sendmail", "-t", "-i"] and "To: ops@example.org" in mail and "--reset" in mail


@pytest.mark.parametrize("character", ["x", "é", "語"])
def test_a_long_mail_is_shortened_and_stays_valid(character: str) -> None:
    mails: list[str] = []

    def run(_command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        mails.append(stdin)
        return Outcome(0)

    long = replace(ALERT, steps=[character * 3000] * 5)
    assert alerts.send(Settings(mail_to="ops@example.org"), long, {}, NOW, run) == {"mail": "sent"}
    (mail,) = mails
    # A pipe takes 4096 bytes at once.
    assert 3500 < len(mail.encode()) <= 4096
    read = email.message_from_string(mail, policy=email.policy.default)
    assert isinstance(read, email.message.EmailMessage) and not read.defects and read["To"] == "ops@example.org"
    text = read.get_content()
    assert text.startswith("3 faults\n") and "inferctl recover main --reset" in text and text.count(character) > 500


def test_a_channel_that_fails_is_tried_again_and_reports_no_secret(receiver: Any) -> None:
    receiver.status = 500
    given = Settings(webhook=f"{receiver.url}/hook?key=hidden", mail_to="ops@example.org")

    def run(command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        return Outcome(None, failure="not_installed", message="sendmail is not installed")

    sent = alerts.send(given, ALERT, {}, NOW, run)
    assert sent["webhook"] == "failed: HTTP 500" and "not installed" in sent["mail"]
    receiver.status = 200
    assert alerts.send(given, ALERT, sent, NOW, run)["webhook"] == "sent"
    wrong = alerts.send(Settings(webhook="file:///etc/passwd"), ALERT, {}, NOW, run)
    assert wrong["webhook"].startswith("failed: it must be an http")


@pytest.mark.parametrize(
    "address",
    [
        "http://ops:s3cret@127.0.0.1/hook",
        "http://s3cret@127.0.0.1/hook",
        "http://127.0.0.1:s3cret/hook",
        "http://127.0.0.1/hook s3cret",
        "http://[s3cret/hook",
        "s3cret",
    ],
)
def test_an_address_that_cannot_be_used_is_never_repeated(address: str) -> None:
    """urllib would put a user and password into an error, and so into the journal."""
    assert not alerts.usable(address)
    sent = alerts.send(Settings(webhook=address, alertmanager=address), ALERT, {}, NOW)
    assert set(sent.values()) == {f"failed: {alerts.NO_ADDRESS}"}


def test_a_server_without_http_is_a_failed_channel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _address = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=greet, daemon=True).start()
        sent = alerts.send(Settings(webhook=f"http://127.0.0.1:{server.getsockname()[1]}/"), ALERT, {}, NOW)
    assert sent["webhook"].startswith("failed: ")


def test_an_alert_is_resolved_in_alertmanager(receiver: Any) -> None:
    given = Settings(alertmanager=receiver.url)
    alerts.send(given, ALERT, {}, NOW)
    assert alerts.resolve(given, ALERT.host, ALERT.instance, ALERT.since, NOW + timedelta(hours=2)) == "sent"
    fired, resolved = (body[0] for _path, body in receiver.got)
    assert (fired["labels"], fired["startsAt"]) == (resolved["labels"], resolved["startsAt"])
    assert resolved["endsAt"] == "2026-05-04T05:00:00Z"


def test_without_channels_no_alert_is_sent() -> None:
    assert alerts.send(Settings(), ALERT, {}, NOW) == {}
