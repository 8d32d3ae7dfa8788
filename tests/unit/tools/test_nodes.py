# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' addresses, and the question that the demo asks."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import nodes
import pytest


def docker(monkeypatch: pytest.MonkeyPatch, ipam: dict[str, str], containers: list[dict[str, str] | None]) -> None:
    """Let docker report a network, and containers in it with the addresses that they asked for."""
    networks = [{"NetworkSettings": {"Networks": {"inference": {"IPAMConfig": entry}}}} for entry in containers]
    answers: dict[str, str] = {
        "network": json.dumps([{"IPAM": {"Config": [ipam]}}]),
        "ps": "\n".join(f"id{index}" for index in range(len(containers))),
        "inspect": json.dumps(networks),
    }

    def run(_docker: str, command: str, *_arguments: str, **_options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 0, answers[command], "")

    monkeypatch.setattr(nodes, "run", run)


HALVES = {"Subnet": "172.18.0.0/24", "IPRange": "172.18.0.0/25"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], "172.18.0.128"),
        ([None, {}], "172.18.0.128"),
        ([None, {"IPv4Address": "172.18.0.128"}, {"IPv4Address": "172.18.0.130"}], "172.18.0.129"),
    ],
    ids=["none", "only Docker's own choices", "a gap"],
)
def test_a_node_gets_an_address_that_is_its_own(
    monkeypatch: pytest.MonkeyPatch, containers: list[dict[str, str] | None], expected: str
) -> None:
    docker(monkeypatch, HALVES, containers)
    monkeypatch.setattr("random.choice", lambda addresses: addresses[0])
    assert nodes.free_address() == expected


def test_addresses_of_nodes_are_random(monkeypatch: pytest.MonkeyPatch) -> None:
    docker(monkeypatch, {"Subnet": "172.18.0.0/16", "IPRange": "172.18.0.0/17"}, [])
    assert len({nodes.free_address() for _draw in range(4)}) > 1


def test_an_old_network_is_an_error_with_the_next_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    docker(monkeypatch, {"Subnet": "172.18.0.0/16"}, [])
    with pytest.raises(nodes.NodeError, match="docker network rm inference; make setup"):
        nodes.free_address()


def test_a_unit_is_stopped_as_soon_as_systemd_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statuses = [1, 1, 0]

    def run(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        assert argv == ("docker", "exec", "x-one", "systemctl", "stop", "some.service") and not check
        return subprocess.CompletedProcess(argv, statuses.pop(0), "", "no bus")

    (tmp_path / "id_ed25519").touch()
    site = nodes.Site(tmp_path, "x-")
    monkeypatch.setattr(nodes, "run", run)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    site.stop("one", "some.service")
    assert not statuses
    statuses[:] = [1] * 2 * nodes.BOOT_SECONDS
    with pytest.raises(nodes.NodeError, match=r"x-one does not stop some\.service: no bus"):
        site.stop("one", "some.service")


def test_the_curl_line_is_the_question_that_is_asked() -> None:
    question = nodes.Question("172.18.0.128", "Who's there?")
    argv = shlex.split(question.as_curl())
    assert argv[-1] == question.body
    assert "http://172.18.0.128:5005/v1/chat/completions" in argv
    assert "Content-Type: application/json" in argv


def test_the_curl_line_to_a_gateway_has_no_key(tmp_path: Path) -> None:
    key = tmp_path / "client key"
    key.write_text("a-key")
    question = nodes.Question("10.0.0.1", "Who?", 8000, key)
    assert question.url == "http://10.0.0.1:8000/v1/chat/completions"
    assert "a-key" not in question.as_curl()
    # A shell puts the key in its place.
    command = ["bash", "-c", f"printf '%s\\n' {question.as_curl()}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "Authorization: Bearer a-key" in shown
    by_tls = nodes.Question("10.0.0.1", "Who?", 8000, key, Path("/x/site-ca.pem"))
    assert by_tls.url.startswith("https://") and "--cacert /x/site-ca.pem https://" in by_tls.as_curl()
    assert "Authorization" not in nodes.Question("10.0.0.1", "Who?").as_curl()


def test_the_request_has_the_api_key_from_the_file(tmp_path: Path) -> None:
    key, seen = tmp_path / "key", []
    key.write_text("a-key")

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        answered = threading.Thread(target=server.handle_request)
        answered.start()
        assert nodes.Question("127.0.0.1", "Who?", server.server_port, key).ask() == {}
        answered.join()
    assert seen == ["Bearer a-key"]
