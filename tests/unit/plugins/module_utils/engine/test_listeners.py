# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes listen on a port and which clients are connected, from /proc."""

from __future__ import annotations

import os
import socket

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import listeners

from ..conftest import FakeProc

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 100 0"

# Addresses as the kernel of a little-endian machine writes them. In rows, 138D is port 5005.
ANY, LOOPBACK, OTHER = "00000000", "0100007F", "0200000A"
ANY6, MAPPED_LOOPBACK = "0" * 32, "0000000000000000FFFF00000100007F"


@pytest.mark.parametrize(
    ("local", "state", "wanted", "taken"),
    [
        (f"{LOOPBACK}:138D", "0A", "127.0.0.1", True),
        (f"{ANY}:138D", "0A", "127.0.0.1", True),
        (f"{ANY}:138D", "0A", "::1", False),
        (f"{ANY6}:138D", "0A", "127.0.0.1", True),
        (f"{ANY6}:138D", "0A", "::1", True),
        (f"{MAPPED_LOOPBACK}:138D", "0A", "127.0.0.1", True),
        (f"{OTHER}:138D", "0A", "127.0.0.1", False),
        (f"{OTHER}:138D", "0A", "10.0.0.2", True),
        (f"{OTHER}:138D", "0A", "0.0.0.0", True),
        (f"{LOOPBACK}:138E", "0A", "127.0.0.1", False),
        # A connection on that port is no listener.
        (f"{LOOPBACK}:138D", "01", "127.0.0.1", False),
    ],
)
def test_a_listener_on_the_address_or_on_all_addresses_is_found(
    proc: FakeProc, local: str, state: str, wanted: str, taken: bool
) -> None:
    name = "tcp6" if len(local) > 20 else "tcp"
    (proc.root / "net" / name).write_text(HEADER + ROW.format(address=local, state=state, inode=77) + "\n")
    assert listeners.listening(5005, wanted, proc.root) == ({77} if taken else set())
    assert listeners.ports(proc.root) == ({int(local[-4:], 16)} if state == "0A" else set())


def row(local: str, peer: str, state: str = "01", uid: int = 0) -> str:
    return f"   0: {local} {peer} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 7 1 0 100 0"


# Port 5005 of this node, a client of another machine, and a port of this node itself.
OWN, REMOTE, LOCAL = "0200000A:138D", "0900000A:9C40", "0200000A:9C41"
MAPPED_OWN, MAPPED_LOCAL = (f"{'0' * 16}FFFF0000{end}" for end in (OWN, LOCAL))


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([], 0),
        ([row(OWN, REMOTE)], 1),
        # A connection that is not yet accepted, and a client that sends no more.
        ([row(OWN, REMOTE, "03"), row(OWN, REMOTE, "08")], 2),
        # The listening socket, and a connection that the engine has closed.
        ([row(OWN, "00000000:0000", "0A"), row(OWN, REMOTE, "06")], 0),
        # The node's own probe (uid 0), and a gateway on the node (uid 998), by IPv4 or at an IPv6 socket.
        ([row(OWN, LOCAL), row(LOCAL, OWN, uid=0)], 0),
        ([row(OWN, LOCAL), row(LOCAL, OWN, uid=998)], 1),
        ([row(MAPPED_OWN, MAPPED_LOCAL), row(LOCAL, OWN, uid=998)], 1),
        ([row(MAPPED_OWN, MAPPED_LOCAL), row(LOCAL, OWN, uid=0)], 0),
        # Another port.
        ([row("0200000A:138E", REMOTE)], 0),
    ],
)
def test_only_connections_of_clients_are_counted(proc: FakeProc, rows: list[str], count: int) -> None:
    for name in ("tcp", "tcp6"):
        there = [each for each in rows if (len(each.split()[1]) > 20) == (name == "tcp6")]
        (proc.root / "net" / name).write_text(HEADER + "".join(f"{each}\n" for each in there))
    found = listeners.clients(5005, {998}, proc.root)
    assert len(found) == count and set(found) <= {"10.0.0.9", "10.0.0.2"}


def test_a_listener_in_the_pid_namespace_of_the_container_is_ours(proc: FakeProc) -> None:
    proc.listen(5005, inode=7)
    proc.process(100, namespace=2)
    proc.process(140, namespace=2, inode=7)
    proc.process(1, namespace=1)
    assert listeners.ownership(5005, "127.0.0.1", 100, proc.root) == listeners.Ownership(True, [])
    stranger = listeners.ownership(5005, "127.0.0.1", 1, proc.root)
    assert stranger.ours is False
    assert [str(process) for process in stranger.strangers] == ["pid 140 (python3 -m server)"]


def test_a_second_listener_on_the_port_is_seen(proc: FakeProc) -> None:
    """With SO_REUSEPORT, both listeners get requests."""
    proc.listen(5005, inode=7)
    proc.listen(5005, inode=8)
    proc.process(100, namespace=2, inode=7)
    proc.process(200, namespace=1, inode=8, cgroup="/docker/" + "ab" * 32)
    found = listeners.ownership(5005, "127.0.0.1", 100, proc.root)
    assert found.ours is True
    assert [process.container_id for process in found.strangers] == ["ab" * 32]


def test_the_control_group_of_a_stranger_may_have_any_name(proc: FakeProc) -> None:
    proc.listen(5005, inode=7)
    proc.process(100, namespace=1, inode=7)
    (proc.root / "100/cgroup").write_bytes(b"0::/user.slice/\xff\xfe\n")
    (stranger,) = listeners.ownership(5005, "127.0.0.1", None, proc.root).strangers
    assert stranger == listeners.Process(100, "python3 -m server")


def test_a_socket_without_a_process_is_counted(proc: FakeProc) -> None:
    proc.listen(5005, inode=7)
    proc.process(100, namespace=2)
    assert listeners.ownership(5005, "127.0.0.1", 100, proc.root) == listeners.Ownership(False, [], unknown=1)


def test_a_listener_of_this_process_is_found_in_the_real_proc(port: int) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        assert listeners.ownership(port, "127.0.0.1", os.getpid()) == listeners.Ownership(True, [])
        assert listeners.ownership(port, "127.0.0.1", None).strangers[0].pid == os.getpid()
    assert listeners.ownership(port, "127.0.0.1", os.getpid()) == listeners.Ownership(False, [])


def test_a_key_on_a_strangers_command_line_is_not_shown(proc: FakeProc) -> None:
    proc.process(100, namespace=1)
    (proc.root / "100/cmdline").write_bytes(b"vllm\0serve\0--api-key\0s3cret\0--port\x005005\0")
    assert listeners.describe(100, proc.root).command == "vllm serve --api-key *** --port 5005"
