# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands `inferctl probe` and `inferctl agent`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core.defaults import AGENT_PORT
from ...core.docker_api import Docker
from ...core.journal import Journal
from ...core.paths import Paths
from ...core.systemd import Notifier
from ...engine.probe import health
from ...engine.probe.observation import LIMIT
from ...engine.state import probe_state
from ...engine.state.drains import format_time
from ..agent import INTERVAL, Agent
from ..prober import DOCKER_TIMEOUT, Prober
from .command import FAILED, LOADING, OK, UNCLEAR, known

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SCHEMA = 1


@dataclass(frozen=True)
class Result:
    """The result of `inferctl probe` for an instance. `since`: the earliest known time of this verdict."""

    instance: str
    verdict: str
    since: str
    latency_ms: int | None
    detail: str


def add(commands: Commands) -> None:
    """Add the commands to the parser."""
    command = commands.add_parser(
        "probe",
        help="probe engines now: send each engine the smallest request of its model's task",
        description="Send each engine the smallest request of its model's task, and judge the answer. Changes nothing. "
        "With the default timeout, takes about 40 s for an engine that hangs.",
        epilog="Exit codes: 0 healthy or busy, 1 hung, dead, wrong or stopped, 2 wrong usage, 3 starting, "
        "4 unknown. With several instances: 1 if any has 1, else 4 if any has 4, else 3 if any has 3.",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="instances (default: all)")
    command.add_argument("--timeout", type=_seconds, default=LIMIT, metavar="S", help="seconds (default: %(default)g)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_probe)

    command = commands.add_parser("agent", help="(called by its unit) probe instances and answer gateways")
    command.add_argument("--address", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    command.add_argument("--port", type=_port, default=AGENT_PORT, help="(default: %(default)s)")
    command.add_argument("--interval", type=_seconds, default=INTERVAL, metavar="S", help="(default: %(default)g)")
    command.add_argument("--timeout", type=_seconds, default=LIMIT, metavar="S", help="(default: %(default)g)")
    command.set_defaults(run=_agent)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError("must be between 0.1 and 3600 seconds")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError("must be a port from 1 to 65535")
    return value


def _probe(options: argparse.Namespace, paths: Paths) -> int:
    names = known(paths, options.names)
    results = asyncio.run(_probe_all(paths, names, options.timeout))
    if options.json:
        print(json.dumps({"schema": SCHEMA, "instances": [asdict(result) for result in results]}, indent=2))
    else:
        for result in results:
            latency = "" if result.latency_ms is None else f" ({result.latency_ms} ms)"
            print(f"{result.instance}: {result.verdict}: {result.detail}{latency}")
        if not results:
            print("no instance on this node")
    return _code({result.verdict for result in results})


def _code(verdicts: set[str]) -> int:
    for verdict, code in ((health.UNKNOWN, UNCLEAR), (health.STARTING, LOADING)):
        if verdict in verdicts and verdicts <= health.SERVING | {health.UNKNOWN, health.STARTING}:
            return code
    return OK if verdicts <= health.SERVING else FAILED


async def _probe_all(paths: Paths, names: list[str], limit: float) -> list[Result]:
    return await asyncio.gather(*(_probe_one(paths, name, limit) for name in names))


async def _probe_one(paths: Paths, name: str, limit: float) -> Result:
    prober = Prober(paths, name, Docker(timeout=DOCKER_TIMEOUT), limit=limit)
    finding = await prober.round()
    while finding.pending:
        finding = await prober.round()
    now = datetime.now(UTC)
    state = probe_state.read(paths, name)
    same = state is not None and state.verdict == finding.verdict and not probe_state.stale(state, now)
    since = state.since if state is not None and same else format_time(now)
    return Result(name, finding.verdict, since, finding.latency_ms, finding.detail)


def _agent(options: argparse.Namespace, paths: Paths) -> int:
    def make_prober(name: str, state: probe_state.ProbeState | None) -> Prober:
        known_start = (state.invocation, state.verdict) if state else ("", health.UNKNOWN)
        docker = Docker(timeout=DOCKER_TIMEOUT)
        return Prober(paths, name, docker, limit=options.timeout, known=known_start)

    async def run() -> None:
        agent = Agent(paths, make_prober, Notifier(), Journal(), interval=options.interval)
        await agent.run(options.address, options.port)

    asyncio.run(run())
    return OK
