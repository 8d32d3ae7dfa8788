# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one case of the lab: `lab.py CASE`, in network, mount and PID namespaces of its own. Prints its result as JSON.

Some cases reload all gateways in each step of each swap: after the step has begun, and before it does anything.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from clients import Arrivals, Http2, late, loads, slow_reader, upload
from load import Report
from world import Engine, Node, World, wait_for, world

from ansible_collections.baremetal.inference.plugins.module_utils.core.defaults import AGENT_PORT

MAIN = Engine("main")


class Clients(Protocol):
    """Clients that run until stop()."""

    def start(self) -> object: ...

    def stop(self) -> Report: ...


def calm(_step: str) -> None:
    """Nothing happens at a step."""


def under(clients: Mapping[str, list[Any]], action: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    """Run an action under load. Returns reports of swaps and clients."""
    running = [one for each in clients.values() for one in each]
    for one in running:
        one.start()
    time.sleep(2)
    try:
        reports = action()
        time.sleep(2)
    finally:
        with ThreadPoolExecutor(len(running)) as pool:
            list(pool.map(lambda one: one.stop(), running))
    return {
        "swaps": [{key: report[key] for key in ("outcome", "failure", "drained_seconds")} for report in reports],
        "clients": {
            name: {
                "succeeded": sum(one.report.succeeded for one in each),
                "failures": [failure for one in each for failure in one.report.failures],
            }
            for name, each in clients.items()
        },
    }


def at_once(*swaps: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(len(swaps)) as pool:
        return [done.result() for done in [pool.submit(swap) for swap in swaps]]


def urls(found: World) -> list[str]:
    return [gateway.url for gateway in found.gateways]


def shapes() -> dict[str, Any]:
    """An only replica, whose requests the gateways hold: slow uploads, slow readers, late answers."""
    found = world([MAIN], load_seconds=6)
    clients: dict[str, list[Any]] = {
        "short": loads(urls(found)),
        "uploads": [Arrivals(urls(found), upload, 1.0)],
        "late": [Arrivals(urls(found), late, 1.5)],
        "readers": [Arrivals(urls(found), slow_reader, 4.0)],
    }

    def swapped() -> list[dict[str, Any]]:
        # The first uploads send their bodies in the swap.
        time.sleep(4)
        return [found.nodes[0].swap(found.reload)]

    return {**under(clients, swapped), "reloads": found.steps}


def pair() -> dict[str, Any]:
    """Two replicas swap one after the other.

    The state of the first node's swap is frozen in an old process, which sends an upload 15 s later: in the second
    node's swap.
    """
    found = world([MAIN], [MAIN], load_seconds=4)
    clients: dict[str, list[Any]] = {
        "short": loads(urls(found), clients=8),
        "uploads": [Arrivals(urls(found), upload, 0.5)],
    }
    return {**under(clients, lambda: [node.swap(found.reload) for node in found.nodes]), "reloads": found.steps}


def tls(*nodes: list[Engine]) -> dict[str, Any]:
    """TLS with HTTP/1.1 and HTTP/2."""
    found = world(*nodes, tls=True)
    clients: dict[str, list[Any]] = {"tls": loads(urls(found)), "http2": [Http2(url) for url in urls(found)]}
    return {**under(clients, lambda: [node.swap(found.reload) for node in found.nodes]), "reloads": found.steps}


def tracked() -> dict[str, Any]:
    """Two sets, each with one engine of the same model, swap at once. Clients also use the model's name."""
    found = world([MAIN], [Engine("other")])
    clients = {
        "sets": loads(urls(found), ("main", "other"), 2),
        "model": loads(urls(found), ("tiny",), 8),
    }

    def swapped() -> list[dict[str, Any]]:
        return at_once(*(lambda node=node: node.swap(found.reload) for node in found.nodes))

    return {**under(clients, swapped), "reloads": found.steps}


def deafened(node: Node, address: str) -> None:
    """A gateway reaches the node's engines, but no longer its agent."""
    chain = "{ type filter hook input priority 0; policy accept; }"
    node.run(
        f"nft add table inet deaf; nft add chain inet deaf input '{chain}';"
        f" nft add rule inet deaf input ip saddr {address} tcp dport {AGENT_PORT} drop"
    )


BUSY = 12
"""Clients at each gateway. With so many, an engine has no request in flight only after its gate has closed."""

DEAF_DRAIN = 20
"""Limit of a drain in seconds. The gate closes 5 s before the limit: until then, a deaf gateway sends requests."""


def deaf(*nodes: list[Engine]) -> dict[str, Any]:
    """A gateway is deaf since before the swap, and its clients continue."""
    found = world(*nodes)

    def swapped() -> list[dict[str, Any]]:
        deafened(found.nodes[0], found.gateways[0].address)
        time.sleep(4)
        return [found.nodes[0].swap(calm, drain_seconds=DEAF_DRAIN)]

    return under({"short": loads(urls(found), clients=BUSY)}, swapped)


def deaf_in_the_middle() -> dict[str, Any]:
    """A gateway becomes deaf when the swap drains."""
    found = world([MAIN], [MAIN])

    def at_step(step: str) -> None:
        if step == "drain":
            deafened(found.nodes[0], found.gateways[0].address)

    return under(
        {"short": loads(urls(found), clients=BUSY)}, lambda: [found.nodes[0].swap(at_step, drain_seconds=DEAF_DRAIN)]
    )


def lost(step: str, *nodes: list[Engine]) -> dict[str, Any]:
    """A gateway dies at a step, or before the swap. The clients of the other gateway continue."""
    found = world(*nodes)

    def at_step(now: str) -> None:
        if now == step:
            found.gateways[0].kill()

    def swapped() -> list[dict[str, Any]]:
        if not step:
            found.gateways[0].kill()
            time.sleep(4)
        return [found.nodes[0].swap(at_step)]

    return under({"short": loads(urls(found)[1:])}, swapped)


HUNG_DRAIN = 120
"""Limit of a drain in seconds, which the swap of an engine that hangs must not use."""


def hung() -> dict[str, Any]:
    """An engine hangs under load, and is swapped with `force`, long before the limit of the drain.

    The requests of this engine are lost, no other.
    """
    found = world([MAIN], [MAIN])
    node = found.nodes[0]

    def gone() -> bool:
        return all(gateway.states("set_main").get(node.name, "").startswith("DOWN") for gateway in found.gateways)

    def swapped() -> list[dict[str, Any]]:
        node.freeze()
        wait_for("gateways leave the engine that hangs", gone, 30)
        try:
            reports = [node.swap(found.reload, force=True, drain_seconds=HUNG_DRAIN)]
        finally:
            # If the swap was refused, clients of this engine would wait for ever.
            node.thaw()
        wait_for("both serve again", found.is_up, 30)
        return reports

    return {**under({"short": loads(urls(found))}, swapped), "reloads": found.steps}


def flushed() -> dict[str, Any]:
    """A gateway has not heard of the drain, and the node's gates are opened at `stop`, `start` and `probe`."""
    found = world([MAIN], [MAIN])
    deafened(found.nodes[0], found.gateways[0].address)

    def at_step(step: str) -> None:
        if step in ("stop", "start", "probe"):
            found.nodes[0].run("nft delete table inet inference_gate")

    return under(
        {"short": loads(urls(found), clients=BUSY)}, lambda: [found.nodes[0].swap(at_step, drain_seconds=DEAF_DRAIN)]
    )


CASES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "shapes": shapes,
    "pair": pair,
    "tls": lambda: tls([MAIN], [MAIN]),
    "tls-lone": lambda: tls([MAIN]),
    "tracked": tracked,
    "deaf": lambda: deaf([MAIN], [MAIN]),
    "deaf-lone": lambda: deaf([MAIN]),
    "deaf-in-the-middle": deaf_in_the_middle,
    "lost": lambda: lost("", [MAIN], [MAIN]),
    "lost-lone": lambda: lost("", [MAIN]),
    "lost-at-drain": lambda: lost("drain", [MAIN], [MAIN]),
    "lost-at-start": lambda: lost("start", [MAIN], [MAIN]),
    "hung": hung,
    "flushed": flushed,
}


def main() -> int:
    began = time.monotonic()
    result = CASES[sys.argv[1]]()
    print(json.dumps({**result, "seconds": round(time.monotonic() - began)}), flush=True)
    # Processes of the lab end with the namespace.
    return 0


if __name__ == "__main__":
    sys.exit(main())
