# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening programs, read from a directory in the form of /proc."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.addresses import is_own
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import services

ipv6 = pytest.mark.skipif(not is_own("::1"), reason="this machine has no IPv6 loopback")

ID = "ab" * 32
OTHER = "cd" * 32


class Proc:
    """A directory in the form of /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self/net").mkdir(parents=True)
        (root / "self/mountinfo").write_text("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n")

    def listen(self, port: int, inode: int, address: str = "00000000", process: str = "self") -> None:
        path = self.root / process / "net/tcp"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else "  sl  local_address rem_address   st\n"
        path.write_text(f"{text}   0: {address}:{port:04X} 00000000:0000 0A 0:0 00:0 0 0 0 {inode} 1\n")

    def process(self, pid: int, command: str, inode: int = 0, group: str = "0::/init.scope", **files: str) -> None:
        directory = self.root / str(pid)
        (directory / "fd").mkdir(parents=True)
        (directory / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        (directory / "cgroup").write_text(f"{group}\n")
        for name, content in files.items():
            (directory / name).write_text(content)
        if inode:
            (directory / "fd/3").symlink_to(f"socket:[{inode}]")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


def run(command: list[str]) -> Outcome:
    return Outcome(0, f"{ID[:12]} web\n")


def ask(address: str, port: int, path: str) -> Any:
    if port == 8000:
        return {"data": [{"id": "chat"}]}
    raise OSError("refused")


def test_an_engine_of_a_unit_is_found_with_its_models(proc: Proc) -> None:
    proc.listen(8000, 501)
    proc.process(
        77, "vllm serve /models/a", 501, "0::/system.slice/llm.service", mountinfo="1 0 8:1 / / rw - ext4 x rw\n"
    )
    assert services.read(proc.root, run, ask) == [
        {
            "port": 8000,
            "address": "0.0.0.0",
            "pid": 77,
            "kind": "vllm",
            "program": "vllm",
            "unit": "llm.service",
            "container": "",
            "model": "/models/a",
            "models": ["chat"],
            "model_path": "/models/a",
        }
    ]


def test_an_engine_behind_a_published_port_is_found_in_its_container(proc: Proc) -> None:
    proc.listen(80, 502)
    proc.process(5, "/usr/bin/docker-proxy -host-port 80 -container-port 8000", 502, "0::/system.slice/docker.service")
    mounts = "1 0 0:50 / / rw - overlay overlay rw\n2 1 8:1 /srv/hub /models rw - ext4 /dev/sda1 rw\n"
    proc.process(88, "vllm serve /models/a", 0, f"0::/system.slice/docker-{ID}.scope", mountinfo=mounts)
    proc.listen(8000, 900, process="88")
    (found,) = services.read(proc.root, run, ask)
    assert (found["port"], found["kind"], found["container"], found["unit"]) == (80, "vllm", "web", "")
    # The container's path, as this machine sees it.
    assert found["model_path"] == "/srv/hub/a"


def test_an_engine_of_the_machine_is_not_the_engine_behind_a_published_port(proc: Proc) -> None:
    proc.process(5, "/usr/bin/docker-proxy -host-port 80 -container-port 8000", 502, "0::/system.slice/docker.service")
    proc.process(77, "vllm serve /models/a", 501, "0::/system.slice/llm.service")
    proc.process(88, "sglang serve /models/b", 0, f"0::/system.slice/docker-{ID}.scope")
    for process in ("self", "77"):
        proc.listen(80, 502, process=process)
        proc.listen(8000, 501, process=process)
    proc.listen(8000, 900, process="88")
    found = services.read(proc.root, run, ask)
    assert [(one["port"], one["pid"], one["kind"]) for one in found] == [(80, 88, "sglang"), (8000, 77, "vllm")]


@pytest.mark.parametrize(
    ("group", "unit", "container"),
    [
        # If the machine is itself a container: one of its units, and one of its containers.
        (f"1:name=systemd:/docker/{OTHER}/system.slice/llm.service", "llm.service", ""),
        (f"1:name=systemd:/docker/{OTHER}/docker/{ID}", "", "web"),
        # A container that Docker does not list, and a service within a container of this machine.
        (f"0::/machine.slice/libpod-{OTHER}.scope", "", OTHER[:12]),
        (f"0::/system.slice/docker-{ID}.scope/system.slice/llm.service", "", "web"),
    ],
)
def test_a_program_has_a_unit_or_a_container_of_this_machine(proc: Proc, group: str, unit: str, container: str) -> None:
    proc.listen(8000, 501)
    proc.process(77, "vllm serve /models/a", 501, group, mountinfo="1 0 8:1 / / rw - ext4 x rw\n")
    (found,) = services.read(proc.root, run, ask)
    assert (found["unit"], found["container"]) == (unit, container)


def test_a_model_of_a_hub_is_found_in_the_cache(proc: Proc) -> None:
    proc.listen(8001, 503)
    snapshots = "data/hub/models--Qwen--Qwen3-8B/snapshots/abc"
    proc.process(
        9,
        "vllm serve Qwen/Qwen3-8B",
        503,
        environ="HOME=/root\0HF_HOME=/data\0",
        mountinfo="1 0 8:1 / / rw - ext4 x rw\n",
    )
    (proc.root / "9/root" / snapshots).mkdir(parents=True)
    (found,) = services.read(proc.root, run, ask)
    # The engine does not answer: its models are unknown, and the command line names one.
    assert found["models"] == [] and found["model_path"] == f"/{snapshots}"


def test_programs_on_loopback_count_only_if_they_are_recognised(proc: Proc) -> None:
    proc.listen(25, 504, "0100007F")
    proc.process(3, "/usr/sbin/exim4 -bd", 504)
    proc.listen(11434, 505, "0100007F")
    proc.process(4, "/usr/local/bin/ollama serve", 505)
    proc.listen(22, 506)
    assert [(one["port"], one["kind"], one["pid"]) for one in services.read(proc.root, run, ask)] == [
        (22, "", None),
        (11434, "ollama", 4),
    ]


def test_an_answer_that_is_not_http_is_an_error(proc: Proc) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            """Send what a socket of ZeroMQ sends first."""
            connection, _peer = server.accept()
            with connection:
                connection.sendall(b"\xff\0\0\0\0\0\0\0\x01\x7f")
                connection.recv(1000)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises((OSError, ValueError)):
            services.ask("127.0.0.1", server.getsockname()[1], "/v1/models")


def test_each_program_is_asked_at_its_own_address(proc: Proc) -> None:
    proc.listen(8000, 501, "0500000A")
    proc.listen(8000, 502, "0100007F")
    proc.listen(8001, 503, "00000000")
    proc.process(7, "vllm serve /models/a", 501)
    proc.process(8, "sglang serve /models/b", 502)
    proc.process(9, "vllm serve /models/c", 503)
    asked = []

    def name(address: str, port: int, path: str) -> Any:
        asked.append((address, port, path))
        return {"data": [{"id": f"at-{address}"}]}

    found = services.read(proc.root, run, name)
    assert [(one["address"], one["pid"], one["models"]) for one in found] == [
        ("127.0.0.1", 8, ["at-127.0.0.1"]),
        ("10.0.0.5", 7, ["at-10.0.0.5"]),
        ("0.0.0.0", 9, ["at-0.0.0.0"]),
    ]
    assert sorted(asked) == [
        ("0.0.0.0", 8001, "/v1/models"),
        ("10.0.0.5", 8000, "/v1/models"),
        ("127.0.0.1", 8000, "/v1/models"),
    ]


def test_programs_of_one_kind_and_port_are_listed_once_for_each_program(proc: Proc) -> None:
    proc.listen(8000, 501, "0100007F")
    proc.listen(8000, 502, "0500000A")
    # The same program at another address, and another process of it at the same address.
    proc.listen(8000, 503, "0600000A")
    proc.listen(8000, 504, "0500000A")
    for pid, inode in ((7, 501), (8, 502), (9, 504)):
        proc.process(pid, "vllm serve /models/a", inode)
    (proc.root / "8/fd/4").symlink_to("socket:[503]")
    found = services.read(proc.root, run, ask)
    assert [(one["address"], one["pid"]) for one in found] == [("127.0.0.1", 7), ("10.0.0.5", 8)]


class Named(BaseHTTPRequestHandler):
    """Answers with the address at which the server was reached."""

    def do_GET(self) -> None:
        body = json.dumps(self.connection.getsockname()[0].removeprefix("::ffff:")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("listens", "loopback", "reached"),
    [
        ("127.0.0.2", True, "127.0.0.2"),
        ("0.0.0.0", True, "127.0.0.1"),
        pytest.param("::1", True, "::1", marks=ipv6),
        pytest.param("::", True, "::1", marks=ipv6),
        pytest.param("::", False, "127.0.0.1", marks=ipv6),
    ],
)
def test_a_socket_is_asked_at_an_address_that_reaches_it(
    monkeypatch: pytest.MonkeyPatch, listens: str, loopback: bool, reached: str
) -> None:
    monkeypatch.setattr(services, "is_own", lambda _address: loopback)
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::") as listening:
        server = HTTPServer(("", 0), Named, bind_and_activate=False)
        server.socket.close()
        server.socket = listening
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert services.ask(listens, listening.getsockname()[1], "/v1/models") == reached


@pytest.mark.parametrize("answer", [{"data": 5}, {"data": [{}, "x", {"id": ""}]}, {"models": "x"}, [], None])
def test_an_answer_without_names_of_models_has_none(proc: Proc, answer: Any) -> None:
    proc.listen(8000, 501)
    proc.process(77, "vllm serve /models/a", 501)
    (found,) = services.read(proc.root, run, lambda _address, _port, _path: answer)
    assert found["models"] == []


def test_an_empty_proc_has_no_services(tmp_path: Path) -> None:
    assert services.read(tmp_path, run, ask) == []
