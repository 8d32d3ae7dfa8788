# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang of nodes, as the tests see it: its engines, its states, and times of faults in seconds."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from node import EPHEMERAL, PROJECT, Node, wait_for

NAME = "big"

TIMES: list[str] = []
"""A line for each fault."""

ENDED = 6.0
"""Limit in seconds for the end of all engines, seen through docker on a busy machine. The channel needs 2 s."""

LOAD = 480.0
"""Limit in seconds until a gang serves. Alone on two cores, two members need up to 120, and three up to 240."""

SILENCE = 20.0
"""Limit in seconds until all engines have ended after a cut: 10 s of silence, and the ends of the engines."""

OUTLIVES = 15.0
"""Seconds for which the parts of an engine may outlive the first part that ends."""

LONG = 400
"""Tokens of an answer that takes longer than the injection of a fault."""

TOKENS = 150
"""Tokens of an answer that ends within the demo's `vllm_drain_timeout`."""

WHOLE = "its end, [DONE]"
"""The end of a client's report about a whole answer."""

CLIENT = """
import http.client, json, sys
body = {"model": "big", "prompt": "x", "max_tokens": int(sys.argv[1]), "ignore_eos": True, "stream": True}
connection = http.client.HTTPConnection("127.0.0.1", 5005, timeout=600)
connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
answer, tokens, last = connection.getresponse(), 0, "no end"
try:
    for line in answer:
        data = line.strip().removeprefix(b"data: ")
        if data == b"[DONE]":
            last += ", [DONE]"
        elif b'"error"' in data:
            last = "an error"
        elif data:
            tokens += 1
            last = "its end" if b'"finish_reason":"length"' in data else last
            print("token", flush=True)
except (OSError, http.client.HTTPException) as error:
    last += f", {type(error).__name__}"
print(f"HTTP {answer.status}, {tokens} tokens, {last}", flush=True)
"""


class Client:
    """A client of the leader that reads an answer with many tokens. The client runs on the leader's node."""

    def __init__(self, leader: Node, tokens: int = LONG) -> None:
        argv = leader.argv("python3", "-c", CLIENT, str(tokens))
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._output = self._process.stdout
        assert self._output.readline() == "token\n", "the answer has not begun"

    def saw(self) -> str:
        """The client's report at the end of its answer; "the node is gone" without a report."""
        words = [line.strip() for line in self._output]
        self._process.wait(60)
        return words[-1] if words and words[-1] != "token" else "the node is gone"


def gone(node: Node, pid: int) -> bool:
    """Whether a node has no process with this number any more."""
    return not node.run(f"ps -p {pid} -o pid=", check=False)


def all_gone(pids: dict[Node, int]) -> bool:
    return all(gone(node, pid) for node, pid in pids.items())


def reboot(node: Node) -> None:
    """Shut a node down by its systemd, and start the node again."""
    # This signal orders systemd to halt the node.
    subprocess.run(["docker", "kill", "--signal", "SIGRTMIN+3", node.container], check=True, capture_output=True)
    subprocess.run(["docker", "wait", node.container], check=True, capture_output=True, timeout=180)
    subprocess.run(["docker", "start", node.container], check=True, capture_output=True)
    wait_for("systemd answers", lambda: node.run("systemctl is-system-running", check=False), 120)


def manage(*arguments: str) -> None:
    """Start or remove nodes of this scenario."""
    subprocess.run([str(PROJECT / "tests/tools/test-node"), *arguments], check=True, cwd=PROJECT)


@contextmanager
def third_node(scenario: str, site: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[Node]:
    """A node `third` for a time. `site` returns the inventory with it, from the variables of the node's connection."""
    directory, inventory = EPHEMERAL / "third", EPHEMERAL / "inventory/third.json"
    # The node has its own SSH key and known_hosts: the other nodes' files stay as they are.
    places = (f"--directory={directory}", f"--inventory={directory}/up.json")
    try:
        manage("up", f"--scenario={scenario}", *places, "--from=snapshot", "third:bookworm")
        known = json.loads((directory / "up.json").read_text())["all"]
        inventory.write_text(json.dumps(site({**known["vars"], **known["hosts"]["third"]})))
        yield Node("third")
    finally:
        inventory.unlink(missing_ok=True)
        manage("down", f"--scenario={scenario}", "third")


class Gang:
    """The instance over all nodes."""

    def __init__(self, leader: Node, *followers: Node) -> None:
        self.leader = leader
        self.follower = followers[0]
        self.nodes = (leader, *followers)

    @property
    def scenario(self) -> str:
        return self.leader.container.removesuffix(f"-{self.leader.name}")

    def active(self) -> list[int]:
        """The active release of each node."""
        return [self.status(node)["release"]["active"] for node in self.nodes]

    def status(self, node: Node) -> dict[str, Any]:
        """`inferctl status` of the instance on a node."""
        (found,) = json.loads(node.run(f"inferctl status {NAME} --json", check=False))["instances"]
        return dict(found)

    def serves(self) -> bool:
        """Whether the leader answers, and all nodes report that the gang serves."""
        return bool(self.answer()) and all(self.status(node)["serving"] for node in self.nodes)

    def answer(self) -> str:
        return self.leader.ask(NAME)

    def wait_serving(self, seconds: float = LOAD) -> None:
        wait_for("the gang serves", self.serves, seconds)

    def wait_next(self, epoch: int, what: str, seconds: float = LOAD) -> None:
        """Wait until an epoch after `epoch` serves."""
        wait_for(f"{what}: a new epoch serves", lambda: self.epoch() > epoch and self.serves(), seconds)

    def wait_loading(self, epoch: int) -> None:
        """Wait until the engines of an epoch after `epoch` load."""
        loading = ("loading", "serving")
        wait_for(
            "the next epoch loads",
            lambda: (
                self.epoch() > epoch
                and all(self.status(node)["gang"]["state"] in loading and self.engine_runs(node) for node in self.nodes)
            ),
            60,
        )

    def reset_counts(self) -> None:
        """Reset the counts of faults and starts: recovery allows three faults in an hour, and systemd five starts."""
        for node in self.nodes:
            node.run(f"inferctl recover {NAME} --reset; systemctl reset-failed vllm@{NAME}")

    def log(self, node: Node) -> str:
        """The journal of a node's supervisor."""
        return node.run(f"journalctl --no-pager --output=cat --unit=vllm@{NAME}")

    def engine_runs(self, node: Node) -> bool:
        """Whether the node has a container of the engine that runs."""
        return bool(node.run(f"docker ps --quiet --filter name=^vllm-{NAME}$", check=False))

    def engines_gone(self) -> bool:
        return not any(self.engine_runs(node) for node in self.nodes)

    def doctor(self, node: Node) -> tuple[str, str]:
        """Status and message of the doctor's check of gangs."""
        (check,) = json.loads(node.run("inferctl doctor engine-gangs --json", check=False))["checks"]
        return check["status"], check["message"]

    def engine_pids(self) -> dict[Node, int]:
        """The first process of each engine."""
        return {node: node.engine_pid(NAME) for node in self.nodes}

    def epoch(self) -> int:
        return int(self.status(self.leader)["gang"]["epoch"])

    def kill_engine(self, node: Node) -> None:
        node.run(f"kill -9 {node.engine_pid(NAME)}")

    def kill_worker(self, node: Node) -> None:
        """Kill the process that computes. The first process of the engine must notice this death."""
        node.run("pkill -KILL -f VLLM::Worke[r]")

    def kill_supervisor(self, node: Node) -> None:
        node.run(f"kill -9 {node.unit('MainPID', NAME)}")

    def ends(self, since: float) -> dict[str, float]:
        """When the engine of each node ended for the first time after `since`, by Docker's events."""
        command = (
            f"docker events --since {since:.3f} --until 0s --filter container=vllm-{NAME} --filter event=die"
            " --format '{{.TimeNano}}'"
        )
        found = {node.name: node.run(command).split() for node in self.nodes}
        assert all(found.values()), found
        return {name: int(times[0]) / 1e9 for name, times in found.items()}

    def again(self, since: float) -> str:
        """How long after `since` the last load began and the gang served, by the leader's journal.

        The ratio divides by the load of the same start, because other work on the machine changes the time of a load.
        """
        command = f"journalctl --no-pager --output=short-unix --unit=vllm@{NAME} --since=@{int(since)}"
        lines = [line.split(" ", 1) for line in self.leader.run(command).splitlines()]
        states = ("members: loading", "members: serving")
        loads, serves = ([float(at) for at, text in lines if text.endswith(state)][-1] - since for state in states)
        return f"loads after {loads:.1f} s, serves after {serves:.1f} s = {serves / (serves - loads):.2f} loads"

    def times(self, since: float) -> str:
        """When the engines ended after `since`, and how long the gang did not serve after the first end."""
        ends = self.ends(since)
        words = ", ".join(f"{name} {at - since:.1f} s" for name, at in ends.items())
        return f"engines ended after {words}; from then, {self.again(min(ends.values()))}"

    @contextmanager
    def fault(self, name: str, ended: float = ENDED, client: Client | None = None) -> Iterator[None]:
        """A fault: all engines end within `ended` seconds, and at most ENDED apart. Then another epoch serves.

        No process of an earlier engine is left.
        """
        before, pids, began = self.epoch(), self.engine_pids(), time.time()
        yield
        wait_for(f"{name}: all engines end", lambda: all_gone(pids), ended)
        saw = f"; the client saw {client.saw()}" if client else ""
        self.wait_next(before, name)
        TIMES.append(f"{name}: {self.times(began)}{saw}")
        ends = self.ends(began).values()
        assert max(ends) - min(ends) <= ENDED, f"{name}: {ends}"
        self.assert_alone(name)

    def assert_alone(self, name: str) -> None:
        """Each node has one container, and all its processes of engines belong to this container."""
        for node in self.nodes:
            containers = node.run("docker ps --all --format '{{.Names}}'").split()
            assert containers == [f"vllm-{NAME}"], f"{name}: {node.name} has {containers}"
            first = node.engine_pid(NAME)
            there = node.run("pgrep -f VLLM:[:] || true").split()
            inside = node.run(f"docker top vllm-{NAME} -eo pid | tail -n +2").split()
            assert set(there) <= {str(first), *inside}, f"{name}: {node.name} has processes of another engine"

    @contextmanager
    def cut(self, member: Node | None = None) -> Iterator[None]:
        """No packet passes between a member and the others, and no connection ends. Without `member`: the follower."""
        lost = member or self.follower
        others = [node for node in self.nodes if node is not lost]
        pairs = [pair for other in others for pair in ((lost, other), (other, lost))]
        routes = [(node, f"blackhole {other.address}") for node, other in pairs]
        try:
            for node, route in routes:
                node.run(f"ip route add {route}")
            yield
        finally:
            for node, route in routes:
                with suppress(AssertionError):
                    node.run(f"ip route del {route}")
