# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests: a node with a receiver of alerts, a client that always sends requests, and the
table of times at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

import faults
from fixtures import deb12
from node import Node, wait_for

__all__ = ["deb12"]

RECEIVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("/root/alerts.jsonl", "ab").write(body + b"\\n")
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8099), Handler).serve_forever()
"""


@pytest.fixture(scope="session", autouse=True)
def receiver_and_client(deb12: Node) -> Iterator[None]:
    """The receiver of alerts, and the client of the engine. A receiver of an earlier run is stopped first."""
    faults.put(deb12, "/root/receiver.py", RECEIVER)
    deb12.run("systemctl stop receiver 2>/dev/null; systemd-run --collect --unit=receiver python3 /root/receiver.py")
    faults.start_client(deb12)
    yield
    deb12.run("systemctl disable --now test-client.service")


@pytest.fixture
def fresh(deb12: Node) -> None:
    """A full budget, and an engine that serves."""
    deb12.run("inferctl recover --reset")
    wait_for("the engine serves", lambda: faults.serves(deb12))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, and write it to a file."""
    if faults.RECORDS:
        terminalreporter.section("faults")
        for line in faults.table():
            terminalreporter.write_line(line)
        faults.write()
        terminalreporter.write_line(f"kept in {faults.RESULT}")
