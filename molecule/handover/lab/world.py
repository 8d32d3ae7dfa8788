# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways and nodes of the lab, each in its own network namespace.

A gateway is HAProxy with the files that the role `gateway` would write, in their usual places: each gateway has its own
mounts. A node is a process of lab_node.py. Everything ends with the PID namespace of this process (lab.py).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.defaults import AGENT_PORT
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import files, unit
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica

LAB = Path(__file__).resolve().parent
WORK = Path("/tmp/lab")
NETWORK = "10.77.0"
API_PORT, METRICS_PORT = 8000, 8404

DEFAULTS: dict[str, Any] = json.loads((LAB.parent / "defaults.json").read_text())
"""The defaults of the role `gateway`."""

SETTINGS: dict[str, Any] = {
    **{name.removeprefix("gateway_"): value for name, value in DEFAULTS.items()},
    "port": API_PORT,
    "metrics_port": METRICS_PORT,
    "agent_port": AGENT_PORT,
    "anonymous": True,
    "concurrent_requests": 0,
    # Small buffers, which a slow reader fills, and a short slow start.
    "body_mib": 1,
    "slow_start_seconds": 1,
    "max_connections": 1000,
}


@dataclass(frozen=True)
class Engine:
    """An engine of a node."""

    name: str
    """The name of the instance, and so of its replica set."""
    port: int = 5005


def run(command: str) -> str:
    """Run a shell command. Raises RuntimeError."""
    done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def connect(addresses: dict[str, str]) -> None:
    """Make a network namespace for each name, on one bridge. This process is on the bridge as well."""
    # The mount hides objects of an earlier case.
    run("mkdir -p /run/netns; mount -t tmpfs netns /run/netns")
    run(f"ip link set lo up; ip link add lab type bridge; ip addr add {NETWORK}.254/24 dev lab; ip link set lab up")
    for name, address in addresses.items():
        run(
            f"ip netns add {name}; ip link add to-{name} type veth peer name eth0 netns {name};"
            f" ip link set to-{name} master lab up; ip -n {name} addr add {address}/24 dev eth0;"
            f" ip -n {name} link set eth0 up; ip -n {name} link set lo up"
        )


@dataclass
class Gateway:
    """A gateway: HAProxy with its own files and network."""

    name: str
    address: str
    tls: bool = False
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.address}:{API_PORT}"

    def start(self, replicas: Sequence[Replica]) -> None:
        """Write HAProxy's files, and start it."""
        root = WORK / self.name
        plan = files.plan({**SETTINGS, "tls": self.tls, "name": self.name}, replicas, [])
        assert not plan.problems, plan.problems
        for directory in ("etc", "run", "var"):
            (root / directory).mkdir(parents=True)
        for name, text in {**plan.maps, **plan.files, "haproxy.cfg": plan.config}.items():
            (root / "etc" / name).write_text(text)
        (root / "var/state").write_text("1\n")
        if self.tls:
            request = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=gateway -days 2"
            run(f"{request} -keyout {root}/etc/tls.pem.key -out {root}/etc/tls.pem 2>&1")
        mounts = {"etc": "/etc/haproxy", "run": "/run/haproxy", "var": "/var/lib/haproxy"}
        mounted = "".join(f"mkdir -p {path}; mount --bind {root}/{part} {path}; " for part, path in mounts.items())
        command = f"{mounted} exec haproxy -W -f /etc/haproxy/haproxy.cfg"
        with (root / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, "sh", "-ec", command], stdout=log, stderr=log
            )

    def run(self, command: str) -> str:
        """Run a command with the gateway's files and network."""
        assert self._process
        return run(f"nsenter --target {self._process.pid} --mount --net sh -c {shlex.quote(command)}")

    def reload(self) -> None:
        """As `systemctl reload haproxy` does by our drop-in."""
        assert self._process
        self.run(unit.SAVE)
        self.run(unit.FIT)
        self._process.send_signal(signal.SIGUSR2)

    def kill(self) -> None:
        """All processes of HAProxy die."""
        assert self._process
        pids = run(f"ip netns pids {self.name}").split()
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        self._process.wait()

    def states(self, backend: str) -> dict[str, str]:
        """The status of each server of a backend; empty while HAProxy does not answer."""
        try:
            said = self.run("echo show stat | socat -t 5 - UNIX-CONNECT:/run/haproxy/admin.sock")
        except RuntimeError:
            return {}
        rows = [line.split(",") for line in said.splitlines()]
        return {row[1]: row[17] for row in rows if row[0] == backend and row[1] != "BACKEND"}


@dataclass
class Node:
    """A node: its agent, its engines, and its swaps, in the process lab_node.py."""

    name: str
    address: str
    engines: Sequence[Engine]
    _process: subprocess.Popen[str] | None = None

    def start(self, gateways: Sequence[Gateway], load_seconds: float) -> None:
        settings = {
            "name": self.name,
            "address": self.address,
            "engines": [asdict(engine) for engine in self.engines],
            "gateways": [{"name": one.name, "address": one.address, "port": METRICS_PORT} for one in gateways],
            "root": str(WORK / self.name),
            "load_seconds": load_seconds,
        }
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, str(LAB / "lab_node.py"), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str) -> str:
        return run(f"ip netns exec {self.name} sh -ec {shlex.quote(command)}")

    def _ask(self, **order: Any) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def swap(self, at_step: Callable[[str], None], **terms: Any) -> dict[str, Any]:
        """Swap the first engine. Calls `at_step` at the beginning of each step.

        Returns the swap's report. Without a report, the outcome is `stuck`.
        """
        assert self._process and self._process.stdout
        self._ask(order="swap", terms=terms)
        for line in self._process.stdout:
            event = json.loads(line)
            if "report" in event:
                return dict(event["report"])
            at_step(event["step"])
            self._ask(order="go")
        raise RuntimeError(f"{self.name} has ended in its swap")

    def freeze(self) -> None:
        """The first engine hangs: its process stops."""
        self._signal("STOP")

    def thaw(self) -> None:
        """Let the first engine continue, if it hangs."""
        self._signal("CONT")

    def _signal(self, name: str) -> None:
        self.run(f"kill -{name} $(cat {WORK}/{self.name}/{self.engines[0].name}.pid)")


@dataclass
class World:
    """All gateways and nodes, with helpers for a test."""

    gateways: list[Gateway]
    nodes: list[Node]
    load_seconds: float
    steps: list[str] = field(default_factory=list)
    """The steps at which all gateways were reloaded."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        gateways = {gateway.name: gateway.address for gateway in self.gateways}
        connect({**gateways, **{node.name: node.address for node in self.nodes}})
        replicas = [
            Replica(host=node.name, address=node.address, name=engine.name, model="tiny", port=engine.port)
            for node in self.nodes
            for engine in node.engines
        ]
        for node in self.nodes:
            node.start(self.gateways, self.load_seconds)
        for gateway in self.gateways:
            gateway.start(replicas)
        wait_for("all engines are up", self.is_up, 30)
        # In a young process of HAProxy, gateway.lua reads the agents itself (YOUNG_SECONDS). The tests begin later.
        time.sleep(4)

    def is_up(self) -> bool:
        wanted = {(engine.name, node.name) for node in self.nodes for engine in node.engines}
        return all(
            gateway.states(f"set_{name}").get(node, "").startswith("UP")
            for gateway in self.gateways
            for name, node in wanted
        )

    def reload(self, step: str) -> None:
        """Reload all gateways that run, at a step of a swap."""
        with self._lock:
            self.steps.append(step)
            for gateway in self.gateways:
                if gateway._process and gateway._process.poll() is None:
                    gateway.reload()


def world(*nodes: Sequence[Engine], tls: bool = False, load_seconds: float = 1.5) -> World:
    """Two gateways, and a node for each list of engines."""
    shutil.rmtree(WORK, ignore_errors=True)
    gateways = [Gateway(f"gw{number}", f"{NETWORK}.{number}", tls) for number in (1, 2)]
    made = [Node(f"n{number}", f"{NETWORK}.{10 + number}", engines) for number, engines in enumerate(nodes, 1)]
    found = World(gateways, made, load_seconds)
    found.start()
    return found


def wait_for(what: str, condition: Callable[[], Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.2)
