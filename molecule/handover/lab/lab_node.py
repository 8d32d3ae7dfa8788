# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the lab: `lab_node.py SETTINGS` in its network namespace.

Real: agent, gate, table of connections, state files, steps and order of a swap, and what gateways report. systemd and
Docker are replaced by processes of paced_engine.py, and the probe by one request.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.defaults import AGENT_PORT
from ansible_collections.baremetal.inference.plugins.module_utils.core.journal import Journal
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges, load_time, prepare
from ansible_collections.baremetal.inference.plugins.module_utils.engine.bridge_place import Place
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.acceptance import Result
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.health import Finding
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway, SwapSettings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.agent import Agent
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import begin, bridge, leave, perform, proof
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.acts import STEPS
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import Node
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import Traffic
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

LAB = Path(__file__).resolve().parent
RUN, SINCE = "20261125T120000-ab12", "2026-11-25T12:00:00Z"
PROBE_SECONDS = 1.0

STOP_SECONDS = 0.5
"""Seconds from the order to stop an engine until its process is gone. A request that arrives meanwhile is lost."""

# Requests in flight get this time after the gate is closed. With the real 60 s, the tests would take longer.
leave.GATED_SECONDS = 5.0


class PrintedJournal(Journal):
    """Prints the entries to the lab's error output."""

    def say(self, message: str, priority: int = 6, **_fields: str | int | None) -> None:
        print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


class LabNode:
    """The node and its engines."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.address = str(given["address"])
        self.load_seconds = float(given["load_seconds"])
        self.ports = {each["name"]: int(each["port"]) for each in given["engines"]}
        self.name = next(iter(self.ports))
        """The instance that is swapped."""
        self.paths = Paths(Path(given["root"]))
        self.settings = SwapSettings(given["name"], tuple(Gateway(**each) for each in given["gateways"]))
        self.engines: dict[str, subprocess.Popen[bytes]] = {}
        self._replace()
        for name in self.ports:
            self._serve(name)

    def _replace(self) -> None:
        """Replace what needs systemd, Docker, or a real engine."""
        for module, name, replacement in (
            (systemd, "systemctl", self._systemctl),
            (systemd, "show", self._show),
            (load_time, "seconds", lambda _name: self.load_seconds),
            (load_time, "expected", lambda *_given: self.load_seconds),
            (prepare, "missing", lambda *_given: []),
            (begin, "place", lambda *_given: Place(problem="it has no bridge_port")),
            (bridge, "place", lambda *_given: Place(problem="it has no bridge_port")),
            (bridges, "declared_port", lambda *_given: None),
            (wait, "wait_ready", self._wait_ready),
            (proof, "accept", self._accept),
            (proof, "watch", self._watch),
            (proof, "counted", lambda *_given: {}),
        ):
            setattr(module, name, replacement)

    def _serve(self, name: str) -> None:
        """Stage two releases, and start the first."""
        instance = Instance(name=name, model="tiny", port=self.ports[name], accelerator="nvidia", gpus=("0",))
        for dtype in ("float32", "float16"):
            made = self._made(instance, dtype)
            releases.stage(self.paths, name, made(0).release.id, made, _refuse)
        files.write_json(self.paths.instance(name), {"schema": 1, "model": "tiny", "release": 2})
        releases.activate(self.paths, name, 1)
        releases.commit(self.paths, name, 1)
        self._start(name, load_seconds=0)

    def _made(self, instance: Instance, dtype: str) -> Callable[[int], Rendered]:
        return lambda number: self._release(instance, dtype, number)

    def _release(self, instance: Instance, dtype: str, number: int) -> Rendered:
        stored = StoredModel("/mnt/models/tiny/ab12cd34ef56", "ab12cd34ef56")
        settings = Settings(address=self.address)
        return render(instance, ["--dtype", dtype], stored, "image", settings, flags={"dtype": dtype}, number=number)

    # Engines ---------------------------------------------------------------------------------------------------------

    def _start(self, name: str, load_seconds: float) -> None:
        engine = f"exec {sys.executable} {LAB / 'paced_engine.py'} {self.ports[name]}"
        self.engines[name] = subprocess.Popen(["sh", "-c", f"sleep {load_seconds}; {engine}"])
        (self.paths.root / f"{name}.pid").write_text(str(self.engines[name].pid))

    def _stop(self, name: str) -> None:
        """Stop an engine as a node does: a drained engine is killed."""
        process = self.engines.pop(name, None)
        if process:
            time.sleep(STOP_SECONDS)
            process.kill()
            process.wait()

    def _systemctl(self, verb: str, *words: str) -> str:
        for name in self.ports:
            if unit_name(name) in words:
                if verb == "stop":
                    self._stop(name)
                elif verb == "start" and name not in self.engines:
                    self._start(name, self.load_seconds)
        return ""

    def _show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        running = {unit_name(name) for name, process in self.engines.items() if process.poll() is None}
        states = {unit: "active" if unit in running else "inactive" for unit in units}
        blank = dict.fromkeys(properties, "")
        return {unit: {**blank, "ActiveState": state, "InvocationID": "1"} for unit, state in states.items()}

    def _answers(self, name: str, seconds: float = 1.0) -> bool:
        connection = http.client.HTTPConnection(self.address, self.ports[name], timeout=seconds)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _wait_ready(self, _paths: Paths, names: Sequence[str], seconds: float) -> list[wait.Outcome]:
        deadline = time.monotonic() + seconds
        while not (ready := self._answers(names[0])) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [wait.Outcome(names[0], "ready" if ready else "loading")]

    def _accept(self, _paths: Paths, name: str, *_given: object, **_more: object) -> Result:
        if not self._answers(name):
            raise proof.Unfit(f"{name} does not answer")
        return Result(["one token"], 42.0)

    def _watch(self, _paths: Paths, name: str, seconds: float, **_more: object) -> str:
        time.sleep(seconds)
        if not self._answers(name):
            raise proof.Unfit(f"{name} stopped serving while it was watched")
        return ""

    def finding(self, name: str) -> Finding:
        """The finding of the agent's probe."""
        if self._answers(name):
            return Finding(health.HEALTHY, "answers")
        process = self.engines.get(name)
        starts = process is None or process.poll() is not None or not self._listens(name)
        return Finding(health.STARTING, "loads") if starts else Finding(health.HUNG, "does not answer")

    def _listens(self, name: str) -> bool:
        return f":{self.ports[name]:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()

    # The swap --------------------------------------------------------------------------------------------------------

    def swap(self, terms: dict[str, Any], report_event: Callable[[dict[str, Any]], None], go: threading.Event) -> None:
        """Swap to the release that does not serve. Reports each step, and waits for `go` there."""
        origin = releases.active_number(self.paths, self.name)
        chosen = Terms(**{"drain_seconds": 60, "watch_seconds": 1, **terms})
        swap = Swap(origin, 3 - (origin or 0), RUN, SINCE, terms=chosen, step=swaps.BEGUN, reason="a test")
        swaps.begin(self.paths, self.name, swap)

        def waits(name: str, step: Callable[[Node, Swap], dict[str, Any]]) -> Callable[[Node, Swap], dict[str, Any]]:
            def taken(node: Node, at: Swap) -> dict[str, Any]:
                go.clear()
                report_event({"step": name})
                go.wait(60)
                return step(node, at)

            return taken

        traffic = Traffic(self.paths, self.settings.gateways)
        steps = {name: waits(name, step) for name, step in STEPS.items()}
        performance = perform.Performance(
            self.paths,
            self.name,
            lambda say: Node(self.paths, self.name, self.settings, traffic, say),
            steps,
            PrintedJournal(),
        )
        report = performance.run()
        left = swaps.read(self.paths, self.name)
        stuck = {"outcome": swaps.STUCK, "failure": left.failure if left else ""}
        report_event({"report": asdict(report) if report else stuck})


def _refuse(message: str) -> None:
    raise RuntimeError(message)


class Prober:
    """The agent's probe of an engine."""

    invocation = "1"

    def __init__(self, node: LabNode, name: str) -> None:
        self._node, self._name = node, name

    async def round(self) -> Finding:
        return await asyncio.to_thread(self._node.finding, self._name)


def follow(node: LabNode) -> None:
    """Read orders, one JSON object in a line."""

    def report_event(event: dict[str, Any]) -> None:
        print(json.dumps(event), flush=True)

    go = threading.Event()
    for line in sys.stdin:
        order = json.loads(line)
        if order["order"] == "go":
            go.set()
        else:
            threading.Thread(target=node.swap, args=(order["terms"], report_event, go), daemon=True).start()


def main() -> None:
    given = json.loads(sys.argv[1])
    node = LabNode(given)
    threading.Thread(target=follow, args=(node,), daemon=True).start()
    agent = Agent(
        node.paths,
        lambda name, _known: Prober(node, name),  # type: ignore[arg-type,return-value]  # as far as the agent uses it
        systemd.Notifier({}),
        PrintedJournal(),
        interval=PROBE_SECONDS,
    )
    try:
        asyncio.run(agent.run("0.0.0.0", AGENT_PORT))
    finally:
        for name in list(node.engines):
            node._stop(name)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
