# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening programs, read from a directory in the form of /proc."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import services

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


def ask(port: int, path: str) -> Any:
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
        # A unit of a machine that is a container itself, and a container of this machine.
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


def test_programs_on_loopback_count_only_if_they_serve_models(proc: Proc) -> None:
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
            services.ask(server.getsockname()[1], "/v1/models")


@pytest.mark.parametrize("answer", [{"data": 5}, {"data": [{}, "x", {"id": ""}]}, {"models": "x"}, [], None])
def test_an_answer_without_names_of_models_has_none(proc: Proc, answer: Any) -> None:
    proc.listen(8000, 501)
    proc.process(77, "vllm serve /models/a", 501)
    (found,) = services.read(proc.root, run, lambda _port, _path: answer)
    assert found["models"] == []


def test_an_empty_proc_has_no_services(tmp_path: Path) -> None:
    assert services.read(tmp_path, run, ask) == []
