# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gateway does with one instance: whether it sends it requests, and which. Private to the collection.

A drain is over when nothing is in flight: in the process of today, and in those that a reload has left to end. These
go on routing, by states that they will never update, for as long as their clients keep asking on idle connections.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .names import KEEP_ALIVE_SECONDS, SET, WEIGHT
from .stat import BACKEND, rows

MASTER_SOCKET = "/run/haproxy-master.sock"
"""Where Debian's unit has the master process take commands."""

_FAILURES = ("econ", "eresp", "hrsp_5xx")
"""Columns of `show stat` that count what an engine failed at. Source: HAProxy's management guide, 9.1."""

_UPTIME = re.compile(r"(\d+)d(\d+)h(\d+)m(\d+)s")


@dataclass(frozen=True)
class Server:
    """One server of a backend; counters are since the process began."""

    backend: str
    name: str
    status: str
    sessions: int
    queued: int
    weight: int
    requests: int
    failures: int

    @property
    def up(self) -> bool:
        return self.status.startswith("UP")


@dataclass(frozen=True)
class Processes:
    """The worker of today, by its age in seconds, and those before it that have not ended."""

    age: float
    old: tuple[int, ...]


def servers(stat: str, host: str, name: str) -> list[Server]:
    """The servers that are an instance, in the answer to `show stat`: its set's own first, then borrowed ones."""
    found: list[Server] = []
    for row in rows(stat):
        own = row["pxname"] == SET + name and row["svname"] == host
        if own or row["svname"] == f"{name}.{host}":
            server = Server(
                backend=row["pxname"],
                name=row["svname"],
                status=row["status"],
                sessions=_number(row, "scur"),
                queued=_number(row, "qcur"),
                weight=_number(row, "weight"),
                requests=_number(row, "stot"),
                failures=sum(_number(row, column) for column in _FAILURES),
            )
            found.insert(0 if own else len(found), server)
    return found


def _number(row: Mapping[str, str | None], column: str) -> int:
    return int(row.get(column) or 0)


def up_hosts(stat: str, name: str) -> list[str]:
    """The hosts of a replica set that this gateway sends requests to."""
    ours = [row for row in rows(stat) if row["pxname"] == SET + name and row["svname"] != BACKEND]
    return sorted(row["svname"] for row in ours if row["status"].startswith("UP"))


def set_requests(stat: str, name: str) -> int:
    """Requests that a replica set has got, since the process began."""
    ours = [row for row in rows(stat) if row["pxname"] == SET + name and row["svname"] == BACKEND]
    return sum(_number(row, "stot") for row in ours)


def processes(proc: str) -> Processes:
    """The workers, from the master's answer to `show proc`."""
    section, age, old = "", 0.0, []
    for line in proc.splitlines():
        if line.startswith("# "):
            section = line.removeprefix("# ").strip()
            continue
        words = line.split()
        if len(words) < 4 or words[1] != "worker":
            continue
        if section == "old workers":
            old.append(int(words[0]))
        elif found := _UPTIME.fullmatch(words[3]):
            days, hours, minutes, seconds = map(int, found.groups())
            age = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return Processes(age, tuple(old))


def not_drained(now: Sequence[Server], workers: Processes, before: Iterable[Server]) -> str:
    """What keeps an instance busy, in words; empty where nothing does. `before` are its servers in old processes."""
    if any(server.up for server in now):
        return "the gateway still sends requests: the node's agent has not yet said drain"
    running = sum(server.sessions + server.queued for server in now)
    if running:
        return f"{running} requests are in flight"
    left = sum(server.sessions + server.queued for server in before)
    if left:
        return f"{left} requests are in flight in a process that a reload has left to end"
    if workers.old and workers.age <= KEEP_ALIVE_SECONDS:
        return f"a process that a reload has left may still get requests, {KEEP_ALIVE_SECONDS} s after it"
    return ""


def not_serving(now: Sequence[Server]) -> str:
    """What is missing until an instance gets its full share, in words; empty where it does."""
    if not now:
        return "the gateway has no such server: run site.yml"
    for server in now:
        if not server.up:
            return f"{server.backend}/{server.name} is {server.status}"
        if server.weight < WEIGHT:
            return f"{server.backend}/{server.name} has {server.weight} % of its share, and grows"
    return ""
