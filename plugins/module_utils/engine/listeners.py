# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds in /proc who listens on a port: the engine of a container or another process. Counts connections. Private to
the collection.

Tests give a directory in the form of /proc.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from .environment import mask

PROC = Path("/proc")

_ESTABLISHED, _SYN_RECV, _CLOSE_WAIT, _LISTEN = "01", "03", "08", "0A"
"""TCP states in the kernel's include/net/tcp_states.h, as /proc/net/tcp writes them."""

_WANTED = (_ESTABLISHED, _SYN_RECV, _CLOSE_WAIT)
"""States of a connection whose client may wait for an answer. CLOSE_WAIT: the client has sent everything."""

_COMMAND_LENGTH = 100
"""Characters of a command line that are shown."""


@dataclass(frozen=True)
class Process:
    """A process that holds a listening socket."""

    pid: int
    command: str
    container_id: str = ""
    """The id in the path of the process's control group. On a node that is itself a container, the id may be the
    node's."""

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})"


@dataclass(frozen=True)
class Ownership:
    """Who listens on an address: processes of the container, and strangers."""

    ours: bool
    strangers: list[Process]
    unknown: int = 0
    """Listening sockets whose process was not found: outside of this PID namespace, or just ended."""


@dataclass(frozen=True)
class _Socket:
    """A row of /proc/net/tcp. An end is an address and a port."""

    local: tuple[IPv4Address | IPv6Address, int]
    peer: tuple[IPv4Address | IPv6Address, int]
    state: str
    uid: int
    inode: int


def listening(port: int, address: str, proc: Path = PROC) -> set[int]:
    """Inodes of the sockets that accept connections to an address and port."""
    wanted = ip_address(address)
    return {
        socket.inode
        for socket in _sockets(proc)
        if socket.local[1] == port and socket.state == _LISTEN and _takes(socket.local[0], wanted)
    }


def ports(proc: Path = PROC) -> set[int]:
    """The ports on which sockets accept connections, at any address."""
    return {socket.local[1] for socket in _sockets(proc) if socket.state == _LISTEN}


def connections(port: int, proc: Path = PROC) -> int:
    """How many connections to a port are open, also those that its process has not yet accepted."""
    return sum(1 for socket in _sockets(proc) if socket.local[1] == port and socket.state == _ESTABLISHED)


def clients(port: int, local_clients: Collection[int] = (), proc: Path = PROC) -> list[str]:
    """The address of each client that is connected to a port, once per connection.

    The node's own connections (probes, metrics) do not count, except those of the users `local_clients` (ids), such as
    a gateway on the same machine.
    """
    sockets = list(_sockets(proc))
    users = {(socket.local, socket.peer): socket.uid for socket in sockets}
    connected = [socket for socket in sockets if socket.local[1] == port and socket.state in _WANTED]
    # Where the connection comes from the node itself, the table has the other end too.
    others = [(users.get((socket.peer, socket.local)), socket.peer[0]) for socket in connected]
    return sorted(str(address) for user, address in others if user is None or user in local_clients)


def _sockets(proc: Path) -> Iterator[_Socket]:
    """Every TCP socket of the node."""
    for name in ("tcp", "tcp6"):
        # tcp6 is missing where IPv6 is off.
        with contextlib.suppress(FileNotFoundError):
            for line in (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
                columns = line.split()
                if len(columns) >= 10:
                    yield _Socket(_end(columns[1]), _end(columns[2]), columns[3], int(columns[7]), int(columns[9]))


def _end(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    """Reads an address and a port in the form of /proc/net/tcp: 32-bit words in the machine's byte order, little
    endian.

    IPv4 in IPv6 becomes IPv4: the two ends of a connection may be in different tables.
    """
    address, _colon, port = text.partition(":")
    raw = b"".join(bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8))
    decoded = ip_address(raw)
    if isinstance(decoded, IPv6Address) and decoded.ipv4_mapped:
        decoded = decoded.ipv4_mapped
    return decoded, int(port, 16)


def _takes(local: IPv4Address | IPv6Address, wanted: IPv4Address | IPv6Address) -> bool:
    """Whether a socket on `local` accepts connections to an address, or prevents another socket from listening there.

    A socket on the IPv6 wildcard also accepts IPv4, unless an option of the socket forbids it. /proc does not show that
    option.
    """
    if local.is_unspecified:
        return isinstance(local, IPv6Address) or local.version == wanted.version
    return wanted.is_unspecified or local == wanted


def ownership(port: int, address: str, init_pid: int | None, proc: Path = PROC) -> Ownership:
    """Who listens on address and port: the container whose first process is init_pid, or others.

    Every socket counts: with SO_REUSEPORT, a second process of the same user can listen on the same port, and gets some
    of the requests.
    """
    inodes = listening(port, address, proc)
    if not inodes:
        return Ownership(ours=False, strangers=[])
    namespace = pid_namespace(init_pid, proc) if init_pid is not None else None
    ours = False
    strangers: list[Process] = []
    known: set[int] = set()
    for pid, held in holders(inodes, proc):
        known |= held
        if namespace is not None and pid_namespace(pid, proc) == namespace:
            ours = True
        else:
            strangers.append(describe(pid, proc))
    return Ownership(ours, strangers, unknown=len(inodes - known))


def holders(inodes: set[int], proc: Path = PROC) -> Iterator[tuple[int, set[int]]]:
    """The processes that hold sockets with these inodes: the pid, and the inodes that the process holds."""
    links = {f"socket:[{inode}]": inode for inode in inodes}
    for directory in proc.iterdir():
        if not directory.name.isdigit():
            continue
        held = set()
        # Processes start and end during the search.
        with contextlib.suppress(OSError):
            for descriptor in (directory / "fd").iterdir():
                with contextlib.suppress(OSError):
                    held.add(links.get(os.readlink(descriptor), 0))
        held.discard(0)
        if held:
            yield int(directory.name), held


def pid_namespace(pid: int, proc: Path = PROC) -> str | None:
    """The PID namespace of a process; None where the process is gone."""
    try:
        return os.readlink(proc / str(pid) / "ns/pid")
    except OSError:
        return None


def describe(pid: int, proc: Path = PROC) -> Process:
    """A process, in words for an operator."""
    command = container = ""
    with contextlib.suppress(OSError):
        raw = (proc / str(pid) / "cmdline").read_bytes()
        command = raw.replace(b"\0", b" ").decode(errors="replace").strip()
    if not command:
        with contextlib.suppress(OSError):
            command = (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    with contextlib.suppress(OSError):
        ids = re.findall(r"[0-9a-f]{64}", (proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace"))
        container = ids[-1] if ids else ""
    # The command line of a foreign process may carry a key.
    return Process(pid, mask(command, [])[:_COMMAND_LENGTH] or "unknown command", container)
