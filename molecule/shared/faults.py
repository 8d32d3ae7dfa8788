# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures recovery from faults, and counts the client's lost requests. Times are in seconds."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from node import PROJECT, Node, wait_for

RESULT = PROJECT / "build/recovery.json"

CLIENT = """
import http.client, json, threading, time

def ask():
    begun, outcome = time.time(), "answered"
    body = {"model": "main", "prompt": str(begun), "max_tokens": 5, "ignore_eos": True}
    connection = http.client.HTTPConnection("127.0.0.1", 5005, timeout=120)
    try:
        connection.connect()
    except OSError:
        outcome = "refused"
    else:
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            outcome = "answered" if answer.status == 200 else "lost"
        except (OSError, http.client.HTTPException):
            outcome = "lost"
    print(json.dumps([begun, outcome]), flush=True)

while True:
    threading.Thread(target=ask, daemon=True).start()
    time.sleep(0.5)
"""
"""Sends the engine two requests per second, each with another prompt. A refused request got no connection: a gateway
would send it to another replica. A lost request got a connection, but no answer with status 200."""

SLOW = """
import os, signal, sys, time
core, share, period = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
while True:
    os.kill(core, signal.SIGCONT)
    time.sleep(share * period)
    os.kill(core, signal.SIGSTOP)
    time.sleep((1 - share) * period)
"""

STRANGER = """
import socket, time
stranger = socket.create_server(("127.0.0.1", 5005))
time.sleep(3600)
"""

ANSWERS = "/root/client.jsonl"


@dataclass(frozen=True)
class Fault:
    """Seconds from a fault to the first step (`answered`), and to the engine's answer to a chat (`served`).

    Both are None if the node rightly did nothing."""

    fault: str
    answered: float | None
    served: float | None
    lost: int
    refused: int
    note: str = ""


RECORDS: list[Fault] = []


def start_client(node: Node) -> None:
    """Start the client now, and at each boot of the node."""
    unit = f"[Service]\nExecStart=python3 /root/client.py\nStandardOutput=append:{ANSWERS}\nRestart=always\n"
    install = "[Install]\nWantedBy=multi-user.target\n"
    put(node, "/root/client.py", CLIENT)
    put(node, "/etc/systemd/system/test-client.service", f"{unit}{install}")
    node.run("systemctl daemon-reload && systemctl enable --now test-client.service")


def put(node: Node, path: str, text: str) -> None:
    """Write a file on a node."""
    subprocess.run(node.argv("tee", path), input=text, text=True, check=True, capture_output=True)


@contextmanager
def slowed(node: Node, share: float, period: float = 1.0) -> Iterator[None]:
    """Let an engine's core run for a share of each period (seconds). The API server runs without a limit."""
    put(node, "/root/slow.py", SLOW)
    core = node.run("pgrep -f VLLM::EngineCor[e]")
    node.run(f"systemd-run --collect --unit=slow python3 /root/slow.py {core} {share} {period}")
    try:
        yield
    finally:
        # A swap may have replaced the process meanwhile.
        node.run(f"systemctl stop slow; kill -CONT {core}", check=False)


def core_and_worker(node: Node) -> list[str]:
    """The engine's processes without the API server."""
    return node.run("pgrep -f 'VLLM::(EngineCor|Worke)[er]'").split()


def processor_seconds(node: Node, pids: list[str]) -> float:
    """Processor seconds of processes, which do not depend on other work of the machine."""
    # Source: sched-stats in the kernel's documentation: the first column, in ns.
    files = " ".join(f"/proc/{pid}/task/*/schedstat" for pid in pids)
    return float(node.run(f"cat {files} | awk '{{sum += $1}} END {{print sum / 1e9}}'"))


@contextmanager
def broken_off(node: Node, period: float = 3.0) -> Iterator[None]:
    """Break an engine's connections to gateways every `period` seconds, but not the node's own connections."""
    loop = f"while sleep {period}; do ss --kill state established sport = :5005 and not dst 127.0.0.1; done"
    node.run(f"systemd-run --collect --unit=broken-off sh -c '{loop}'")
    try:
        yield
    finally:
        node.run("systemctl stop broken-off")


@contextmanager
def throttled(node: Node, pids: list[str], cores: float) -> Iterator[None]:
    """Limit processes to a share of a processor, such as 0.003. Other processes of their container have no limit."""
    scope = f"throttled-{pids[0]}.scope"
    if node.run(f"systemctl is-active {scope}", check=False) != "active":
        manager = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager"
        given = f"{scope} fail 1 PIDs au {len(pids)} {' '.join(pids)} 0"
        node.run(f"busctl call {manager} StartTransientUnit 'ssa(sv)a(sa(sv))' {given}")
    node.run(f"systemctl set-property --runtime {scope} CPUQuota={cores * 100:.2f}% CPUQuotaPeriodSec=1s")
    try:
        yield
    finally:
        # A stop of the unit would end the processes.
        node.run(f"systemctl set-property --runtime {scope} CPUQuota=")


@contextmanager
def given_up(node: Node) -> Iterator[None]:
    """Start an engine whose port another process uses, until recovery has given up."""
    put(node, "/root/stranger.py", STRANGER)
    node.run("systemctl stop vllm@main; systemd-run --collect --unit=stranger python3 /root/stranger.py; sleep 1")
    try:
        node.run("systemctl start --no-block vllm@main")
        wait_for("recovery gives up", lambda: recorded(node, "recovery/main.json").get("breaker"), 180)
        yield
    finally:
        node.run("systemctl stop stranger")


def answers(node: Node, begin: float) -> list[str]:
    """The outcomes of the requests that began after a time and have ended."""
    lines = (json.loads(line) for line in node.run(f"cat {ANSWERS}", check=False).splitlines())
    return [outcome for begun, outcome in lines if begun >= begin]


def record(node: Node, fault: str, began: float, answered: float | None, served: float | None, note: str = "") -> None:
    """Record a fault that was injected at a time (seconds since the epoch)."""
    # A request that the fault hit may have begun a moment before.
    seen = answers(node, began - 1)
    RECORDS.append(Fault(fault, answered, served, seen.count("lost"), seen.count("refused"), note))


def recovered(
    node: Node, fault: str, answered: Callable[[], Any], limit: float = 75, began: float | None = None
) -> Fault:
    """Wait for the first step (`answered`), and for the engine's answer to a chat. `began`: the time of the fault."""
    began = began or time.time()
    wait_for(f"{fault}: the first step", answered, limit)
    reacted = time.time() - began
    wait_for(f"{fault}: the engine serves", lambda: node.ask() == "I am tiny-a.")
    record(node, fault, began, round(reacted, 1), round(time.time() - began, 1))
    wait_for("the agent reports a healthy engine", lambda: serves(node), 60)
    return RECORDS[-1]


def untouched(node: Node, fault: str, began: float, note: str = "") -> None:
    """Record a fault that needed no step."""
    record(node, fault, began, None, None, note)


def serves(node: Node) -> bool:
    return recorded(node, "probe/main.json").get("verdict") == "healthy" and node.unit("ActiveState") == "active"


def recorded(node: Node, file: str) -> dict[str, Any]:
    return dict(json.loads(node.run(f"cat /var/lib/inference/{file}", check=False) or "{}"))


def steps(node: Node) -> list[dict[str, Any]]:
    return list(recorded(node, "recovery/main.json").get("steps", []))


def more_steps(node: Node) -> Callable[[], bool]:
    before = len(steps(node))
    return lambda: len(steps(node)) > before


def started_anew(node: Node) -> Callable[[], bool]:
    """A condition: systemd has started the engine again since this call."""
    before = node.unit("InvocationID")
    return lambda: node.unit("InvocationID") not in ("", before)


def load_seconds(node: Node) -> float:
    """Seconds of the engine's last load."""
    ready, begun = (int(node.unit(f"{name}TimestampMonotonic")) for name in ("ActiveEnter", "InactiveExit"))
    return round((ready - begun) / 1e6, 1)


def table() -> list[str]:
    """A table with a line for each fault."""
    lines = [f"{'fault':<44}{'answered':>10}{'serves':>9}{'lost':>6}{'refused':>9}  "]
    for one in RECORDS:
        times = [f"{value:.1f} s" if value is not None else "-" for value in (one.answered, one.served)]
        lines.append(f"{one.fault:<44}{times[0]:>10}{times[1]:>9}{one.lost:>6}{one.refused:>9}  {one.note}".rstrip())
    return lines


def write(path: Path = RESULT) -> None:
    """Write the results to a file, for comparisons."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "faults": [asdict(one) for one in RECORDS]}, indent=2) + "\n")
