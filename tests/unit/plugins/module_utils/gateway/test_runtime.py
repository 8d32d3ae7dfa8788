# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands to a running HAProxy, and its answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import runtime

STAT = """\
# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,weight,
api,FRONTEND,,,0,4,2000,53,11,16,0,0,0,,,,,OPEN,,
set_main,one,0,0,0,1,4,9,1,1,,0,,0,0,0,0,UP,100,
set_main,two,0,0,0,1,4,9,1,1,,0,,0,0,0,0,DRAIN (agent),100,
set_main,BACKEND,0,0,0,1,4,9,1,1,,0,,0,0,0,0,UP,200,
"""


def answers(said: list[str], replies: dict[str, str]) -> Callable[[str], str]:
    def ask(command: str) -> str:
        said.append(command)
        return next((reply for begin, reply in replies.items() if command.startswith(begin)), "")

    return ask


def test_a_map_is_replaced_at_once() -> None:
    said: list[str] = []
    runtime.replace_map(answers(said, {"prepare": "New version created: 7"}), "keys.map", "a 1\nb 2\n")
    assert said == ["prepare map keys.map", "add map @7 keys.map <<\na 1\nb 2\n", "commit map @7 keys.map"]


def test_an_empty_map_adds_nothing() -> None:
    said: list[str] = []
    runtime.replace_map(answers(said, {"prepare": "New version created: 7"}), "keys.map", "")
    assert said == ["prepare map keys.map", "commit map @7 keys.map"]


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ({"prepare": "Unknown map identifier."}, "prepare map keys.map: Unknown map"),
        ({"prepare": "New version created: 7", "add": "Data value expected."}, "add map @7 keys.map <<: Data value"),
        ({"prepare": "New version created: 7", "commit": "Out of range."}, "commit map @7 keys.map: Out of range"),
    ],
)
def test_a_refusal_is_an_error_with_haproxys_words(replies: dict[str, str], words: str) -> None:
    with pytest.raises(runtime.RuntimeRefusal, match=words):
        runtime.replace_map(answers([], replies), "keys.map", "a 1\n")


def test_states_of_servers_are_grouped_by_backend() -> None:
    found = runtime.server_states(answers([], {"show stat": STAT}))
    assert found == {"set_main": {"one": "UP", "two": "DRAIN (agent)"}}


def test_the_worker_is_the_process_that_serves() -> None:
    assert runtime.worker(answers([], {"show info": "Name: HAProxy\nPid: 627\nUptime: 1"})) == 627
    assert runtime.worker(answers([], {"show info": "Unknown command"})) is None


def test_without_a_socket_there_is_no_worker(tmp_path: Path) -> None:
    assert runtime.worker(runtime.ask(tmp_path / "none.sock")) is None


def test_the_end_of_the_input_ends_a_command(tmp_path: Path) -> None:
    """HAProxy answers after the end of the input, and closes the connection."""
    path = tmp_path / "s"
    heard = []

    def serve(listener: socket.socket) -> None:
        connection, _address = listener.accept()
        with connection:
            while part := connection.recv(100):
                heard.append(part)
            connection.sendall(b"an answer\n" * 20000 + b"\n")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        answer = runtime.ask(path)("show info")
        thread.join()
    assert b"".join(heard) == b"show info\n"
    assert answer.count("an answer") == 20000
