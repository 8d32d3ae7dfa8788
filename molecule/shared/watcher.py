# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A monitoring host in the tests: the APIs of Prometheus and Alertmanager, and a receiver of notifications."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from node import EPHEMERAL, PROJECT, Node, playbook, wait_for

MONITORING = "baremetal.inference.monitoring"

RECEIVED = "/tmp/received.jsonl"

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

# The receiver: appends each request of Alertmanager to a file, one request a line.
HOOK = f"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("{RECEIVED}", "ab") as received:
            received.write(body.replace(b"\\n", b" ") + b"\\n")
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def shipped_rules() -> list[dict[str, Any]]:
    """All rules that the role installs."""
    files = [yaml.safe_load(path.read_text()) for path in (PROJECT / "roles/monitoring/files/rules").glob("*.yml")]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def slower_than(seconds: float) -> set[str]:
    """The alerts whose rules wait for longer than `seconds`: no event of the last `seconds` can have raised them."""
    waits = {rule["alert"]: rule.get("for", "0s") for rule in shipped_rules() if "alert" in rule}
    return {name for name, text in waits.items() if int(text[:-1]) * UNITS[text[-1]] > seconds}


@dataclass(frozen=True)
class Watcher:
    """A monitoring host."""

    node: Node
    user: str
    password: str
    hook: int
    """The port of the receiver of notifications."""

    # --- Prometheus and Alertmanager

    def status(self, port: int, path: str = "/", user: str = "", node: Node | None = None, scheme: str = "http") -> str:
        """The HTTP status of a request from the monitoring host itself or from `node`; 000 for no answer."""
        host = self.node.address if node else "127.0.0.1"
        who = f"--user '{user}'" if user else ""
        command = f"curl --insecure --silent --output /dev/null --max-time 3 --write-out '%{{http_code}}' {who}"
        return (node or self.node).run(f"{command} {scheme}://{host}:{port}{path}", check=False)

    def get(self, path: str, port: int = 9090) -> Any:
        """The answer of an API to the user of this object."""
        url = f"http://127.0.0.1:{port}{path}"
        return json.loads(self.node.run(f"curl --silent --fail --globoff --user '{self.user}:{self.password}' '{url}'"))

    def query(self, expression: str, port: int = 9090) -> list[dict[str, Any]]:
        """The series of an expression now, each with `metric` and `value`. `port` is that of the Prometheus to ask."""
        url = f"http://127.0.0.1:{port}/api/v1/query"
        user = f"--user '{self.user}:{self.password}'"
        argv = self.node.argv("sh", "-c", f"curl --silent {user} --data-urlencode query@- {url}")
        said = subprocess.run(argv, input=expression, capture_output=True, text=True, check=True)
        answer = json.loads(said.stdout)
        assert answer["status"] == "success", (expression, answer)
        return list(answer["data"]["result"])

    def targets(self) -> dict[tuple[str, str], str]:
        """The health of each target (up, down or unknown), by job and node."""
        found = self.get("/api/v1/targets?state=active")["data"]["activeTargets"]
        return {(target["labels"]["job"], target["labels"]["node"]): target["health"] for target in found}

    def rules(self) -> set[str]:
        """The names of all rules that were evaluated without a fault."""
        groups = self.get("/api/v1/rules")["data"]["groups"]
        return {rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "ok"}

    def value(self, expression: str) -> float:
        """The value of an expression that has just one series."""
        (series,) = self.query(expression)
        return float(series["value"][1])

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts that Alertmanager has, silenced and inhibited alerts included."""
        return list(self.get("/api/v2/alerts", 9093))

    def inhibited(self, *names: str) -> dict[tuple[str, str], bool]:
        """Whether another alert inhibits the alerts with these names, by name and node."""
        found = [alert for alert in self.alerts() if alert["labels"]["alertname"] in names]
        return {
            (alert["labels"]["alertname"], alert["labels"]["node"]): bool(alert["status"]["inhibitedBy"])
            for alert in found
        }

    def fired(self, since: float = 0.0) -> set[tuple[str, str]]:
        """The alerts that fire, by name and node. With `since` (epoch seconds), also those that have fired since."""
        window = f"[{max(1, int(time.time() - since))}s]" if since else ""
        series = f'ALERTS{{alertstate="firing"}}{window}'
        found = self.query(f"last_over_time({series})" if since else series)
        return {(one["metric"]["alertname"], one["metric"].get("node", "")) for one in found}

    def raised(self, since: float, before: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """The alerts that an event after `since` has raised, by name and node. Alerts of `before` do not count.

        Alerts whose rules wait for longer than the time since `since` do not count either: their cause is older. One
        example is NodeClockOff, which fires on every container after half an hour, because the host sets the clock.
        """
        found = self.fired(since) - before
        slow = slower_than(time.time() - since)
        return {(name, node) for name, node in found if name not in slow}

    @contextmanager
    def tunnel(self, port: int = 9090) -> Iterator[str]:
        """Forward a port of the monitoring host to this machine, as docs/monitoring.md shows. Yields its URL here."""
        own = 18000 + port % 1000
        options = ["-o", f"UserKnownHostsFile={EPHEMERAL / 'known_hosts'}", "-o", "ExitOnForwardFailure=yes"]
        argv = ["ssh", "-N", "-i", str(EPHEMERAL / "id_ed25519"), *options, "-L", f"{own}:127.0.0.1:{port}"]
        process = subprocess.Popen([*argv, f"root@{self.node.address}"], stdin=subprocess.DEVNULL)
        try:
            wait_for("the tunnel", lambda: process.poll() is not None or _listens(own), 20)
            assert process.poll() is None, "ssh has ended"
            yield f"http://127.0.0.1:{own}"
        finally:
            process.terminate()
            process.wait()

    # --- the receiver of notifications

    def listen(self) -> None:
        """Start the receiver, and delete all earlier notifications.

        A receiver that runs already keeps running: without a receiver, the alert NotificationsFail would fire.
        """
        self.node.run(f"rm -f {RECEIVED}")
        if self.node.run("systemctl is-active hook.service", check=False) == "active":
            return
        argv = self.node.argv("sh", "-c", "cat > /tmp/hook.py")
        subprocess.run(argv, input=HOOK, text=True, check=True)
        self.node.run(f"systemd-run --unit=hook --collect python3 /tmp/hook.py {self.hook}")

    def delivered(self) -> list[dict[str, Any]]:
        """All alerts that were delivered, in order."""
        lines = self.node.run(f"cat {RECEIVED}", check=False).splitlines()
        return [alert for line in lines for alert in json.loads(line)["alerts"]]

    def delivered_labels(self, *names: str, status: str = "firing") -> list[dict[str, str]]:
        """The labels of the delivered alerts with these names and this status."""
        found = [alert for alert in self.delivered() if alert["status"] == status]
        return [alert["labels"] for alert in found if alert["labels"]["alertname"] in names]

    def delivered_since(self, since: float, before: set[tuple[str, str]]) -> dict[str, str]:
        """The severity of each delivered alert, by name, that an event after `since` has raised.

        Alerts of `before`, and alerts whose rules wait for longer than the time since `since`, do not count:
        Alertmanager may still send them.
        """
        known = {name for name, _node in before} | slower_than(time.time() - since)
        found = [alert["labels"] for alert in self.delivered() if alert["status"] == "firing"]
        return {labels["alertname"]: labels["severity"] for labels in found if labels["alertname"] not in known}

    # --- Ansible

    def playbook(self, *options: str, limit: str = "", check: bool = True, **extra: Any) -> str:
        """Run baremetal.inference.monitoring on `limit`, else on the monitoring host alone. Returns the output."""
        return playbook(limit or self.node.name, *options, check=check, name=MONITORING, **extra)

    def files(self) -> str:
        """Content, mode and owner of the configuration of Prometheus and Alertmanager, and their main processes."""
        return self.node.run(
            "cd /etc/prometheus; find . -type f -printf '%p %m %u %g\\n' | sort;"
            " find . -type f | sort | xargs sha256sum;"
            " systemctl show --property=MainPID,ActiveState prometheus.service prometheus-alertmanager.service"
        )


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def without(node: Node, directory: Path, group: str = "") -> Path:
    """A copy of the scenario's inventory without a node; with `group`, the node is missing in this group alone."""
    for path in (EPHEMERAL / "inventory").iterdir():
        if path.is_file():
            known = yaml.safe_load(path.read_text())
            parts = [group] if group else list(known)
            cut = {part: _cut(known[part], node.name) for part in parts if part in known}
            (directory / path.name).write_text(yaml.safe_dump({**known, **cut}))
        else:
            (directory / path.name).symlink_to(path.resolve())
    return directory


def _cut(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _cut(item, name) for key, item in value.items() if key != name}
    return value
