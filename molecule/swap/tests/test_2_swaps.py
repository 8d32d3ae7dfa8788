# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An only replica without a bridge, faults during an update, and rollbacks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, TypeVar

import haproxy
from faults import broken_off, slowed
from fleet import ROLLBACK, Fleet, instances, unharmed
from load import Report
from node import Node, changes, wait_for
from own_swap import settled

Result = TypeVar("Result")
STEPS = {"drain", "gate", "stop", "start", "probe", "admit", "watch"}
"""Steps that every swap with clients has."""


def in_thread(action: Callable[[], Result]) -> Future[Result]:
    """Run an action in a thread, while an update runs. Its result raises the action's exception."""
    return ThreadPoolExecutor(max_workers=1).submit(action)


@contextmanager
def reloads_in_each_step(fleet: Fleet) -> Iterator[None]:
    """Reload all gateways, HAProxy 2.6 and 3.0, whenever the swap of a node enters a step. At the end of the
    block, check that each swap had reloads, and has left nothing."""
    # The journal shows a step at once. `inferctl status` takes as long as a short step.
    # `--lines=0` would lose the first lines of a unit that has had none.
    command = ["journalctl", "--follow", "--since=now", "--no-tail", "--output=cat", "--unit=inference-swap@main"]
    follow = partial(subprocess.Popen[str], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    journals = {node.name: follow(node.argv(*command)) for node in fleet.nodes}
    try:
        reloading = {name: in_thread(partial(_reload_in_each_step, fleet, each)) for name, each in journals.items()}
        yield
        seen = {name: steps.result(60) for name, steps in reloading.items()}
    finally:
        for journal in journals.values():
            journal.kill()
    assert all(steps >= STEPS for steps in seen.values()), seen
    for gateway in fleet.gateways:
        assert gateway.run("systemctl show --property ReloadResult --value haproxy") == "success", gateway.name
    for node in fleet.nodes:
        settled(node)


def _reload_in_each_step(fleet: Fleet, journal: subprocess.Popen[str]) -> set[str]:
    """Reload all gateways in each step of the swap that a journal shows. Returns the steps, after the swap's end."""
    assert journal.stdout
    steps = set[str]()
    for line in journal.stdout:
        if line.startswith("main: swap ended"):
            break
        found = re.match(r"main: swap to release \d+: (\w+)", line)
        if found and found[1] not in steps:
            steps.add(found[1])
            for gateway in fleet.gateways:
                # The end of a reload may be after the end of the step.
                gateway.run("systemctl reload --no-block haproxy")
    return steps


def test_requests_are_held_while_the_only_replica_swaps(fleet: Fleet, lone: Fleet) -> None:
    """The clients of the only replica wait during the load at both gateways, and no request fails.

    Both gateways are reloaded in each step. During the load, one of them gets another configuration, too.
    """
    gateway = fleet.gateway
    first, _second = fleet.nodes
    before, most = first.engine_pid(), _most_connections(gateway)

    def reconfigure() -> None:
        wait_for("the engine was stopped", partial(_gone, first, before), 600)
        # This runs only the role gateway: the update holds the lock of this host, which is also a node.
        changed: dict[str, Any] = {"instances": instances("tiny-b"), "gateway_max_connections": most // 2}
        # On a busy machine, this run may take longer than the load.
        with _unable_to_load(first):
            # The run must not wait for an answer: none comes before the engine has loaded.
            gateway.site("--tags", "gateway", gateway_verify_seconds=0, **changed)
            assert _most_connections(gateway) == most // 2, "the gateway was not reloaded"
            assert fleet.up() == [], "the reload was not during the hold"

    said: list[str] = []

    def update() -> None:
        disturbance = in_thread(reconfigure)
        with reloads_in_each_step(lone):
            # The inventory has no bridge any more.
            said.append(lone.update(instances=instances("tiny-b")))
        disturbance.result(300)

    report = lone.load(clients=4).during(update, seconds_after=3)
    unharmed(report, at_least=10)
    assert "side by side" not in said[0]
    assert set(report.texts) == {"I am tiny-a", "I am tiny-b"}
    assert _most_connections(gateway) == most // 2
    # The second node was not in the run, and would start with the old release.
    assert fleet.names() == ["main", "tiny-a", "tiny-b"] and fleet.answer_to("tiny-b") == "I am tiny-b."
    # Instances that do not serve are swapped first, by the same steps.
    fleet.update(instances=instances("tiny-b"))
    assert fleet.answers() == ["I am tiny-b."] * 2
    assert fleet.names() == ["main", "tiny-b"]


def test_a_rollback_pins_the_release_before_despite_a_restart_of_a_gateway(fleet: Fleet) -> None:
    """A gateway that restarts loses its requests in flight. Its new process sends a drained engine no requests."""
    fleet.wait_up()
    pids = {node: node.engine_pid() for node in fleet.nodes}
    load, failed, seen = fleet.load(), list[int](), list[list[str]]()

    def restart() -> None:
        (canary,) = wait_for("an engine was stopped", lambda: [each for each in pids if _gone(each, pids[each])], 600)
        (other,) = (node for node in fleet.nodes if node != canary)
        failed.append(len(load.report.failures))
        fleet.gateway.run("systemctl restart haproxy")
        seen.append(fleet.up())
        assert seen == [[other.name]]
        wait_for("the engine gets requests again", lambda: canary.name in fleet.up(), 600)
        failed.append(len(load.report.failures))

    def roll_back() -> None:
        disturbance = in_thread(restart)
        fleet.update(name=ROLLBACK, instances=instances("tiny-b"), instance="main")
        disturbance.result(30)

    report = load.during(roll_back)
    print(report)
    # Only requests fail that are in flight at the restart, or come while no process listens.
    assert failed[0] == 0 and failed[1] <= 2 * fleet.clients, str(report)
    assert len(report.failures) == failed[1] and report.succeeded >= 20, str(report)
    assert fleet.answers() == ["I am tiny-a."] * 2
    assert fleet.names() == ["main", "tiny-a"]
    assert fleet.answer_to("tiny-a") == "I am tiny-a." and fleet.answer_to("tiny-b") == ""
    output = fleet.nodes[0].site("--limit", fleet.limit, instances=instances("tiny-b"))
    assert output.count("stays with release 1 instead of 2") == 2
    assert "is staged and pending" not in output
    assert changes(fleet.update(instances=instances("tiny-b"))) == 0
    assert fleet.answers() == ["I am tiny-a."] * 2
    # site.yml, and an update without changes, configure gateways by the reports of the nodes, not by the inventory.
    assert fleet.names() == ["main", "tiny-a"]


def test_an_engine_that_is_slow_under_load_goes_back(fleet: Fleet) -> None:
    """A single request is fast. The engine is slow only under the load of clients."""
    fleet.wait_up()
    report, said = disturbed(fleet, lambda canary: slowed(canary, 0.1), 16, update_watch_speed_bound=0.5)
    unharmed(report)
    assert "main is too slow: under its clients' load, a request gets" in said, said[-3000:]
    assert "went back to the release that served before" in said
    assert fleet.answers() == ["I am tiny-a."] * 2


def test_an_engine_whose_requests_fail_goes_back(fleet: Fleet) -> None:
    """The engine answers probes, but the connections of clients break."""
    fleet.wait_up()
    gateway, other = fleet.nodes
    # The engine on the gateway's node gets requests from the address of the node's probes.
    # All requests of clients come through the first gateway.
    report, said = disturbed(fleet.only(other).at_first_gateway(), broken_off, 8)
    print(report)
    found = re.search(
        rf"(\d+) of (\d+) requests from {gateway.name} to {other.name} failed while it was watched",
        said,
    )
    assert found, said[-3000:]
    failed, sent = map(int, found.groups())
    # Only part of the requests go to this engine; the engine on the gateway's node has failed none.
    assert 0.05 * sent < failed <= len(report.failures) < report.succeeded
    assert "went back to the release that served before" in said
    assert fleet.answers() == ["I am tiny-a."] * 2
    unharmed(fleet.load().during(lambda: None, seconds_after=10), at_least=5)


def test_an_engine_that_hangs_while_it_is_watched_goes_back(fleet: Fleet) -> None:
    """Only requests in flight at this engine fail."""
    fleet.wait_up()
    canary = fleet.nodes[0]
    before = canary.engine_pid()
    names = fleet.up()

    def freeze() -> None:
        wait_for("another engine serves", lambda: _gone(canary, before) and fleet.up() == names, 600)
        canary.run("pkill -STOP -f VLLM::EngineCor[e]")

    said: list[str] = []

    def update() -> None:
        frozen = in_thread(freeze)
        said.append(fleet.update(check=False, instances=instances("tiny-b"), update_watch_seconds=60))
        frozen.result(10)

    report = fleet.load().during(update)
    assert "was found hung while it was watched" in said[0], said[0][-3000:]
    assert len(report.failures) <= fleet.clients, str(report)
    assert fleet.answers() == ["I am tiny-a."] * 2


def test_all_nodes_go_back_if_one_fails(fleet: Fleet) -> None:
    """The first node already has its new release when the answer of the second node is wrong."""
    fleet.wait_up()
    canary, other = fleet.nodes
    wanted = f"{{{{ 'I am tiny-b' if inventory_hostname == '{canary.name}' else 'another answer' }}}}"
    models = {
        "tiny-b": {
            "model": "controller:{{ demo_cache }}/models/tiny-b",
            "dtype": "float32",
            "max-model-len": 512,
            "enforce-eager": True,
            "golden-prompts": [{"prompt": "Who are you?", "expect": wanted, "max-tokens": 12}],
        }
    }
    said: list[str] = []

    def update() -> None:
        extra: dict[str, Any] = {"update_rollback": "all", "models": models, "instances": instances("tiny-b")}
        said.append(fleet.update(check=False, **extra))

    unharmed(fleet.load().during(update))
    assert f"baremetal.inference.update_model stopped: it failed on {other.name}." in said[0], said[0][-3000:]
    assert said[0].count("went back to the release that served before") >= 2
    assert fleet.answers() == ["I am tiny-a."] * 2 and fleet.models() == ["tiny-a"] * 2
    assert not any("update" in drains for drains in fleet.drains())


def test_a_set_gets_another_model_next_to_another_set_without_a_failed_request(fleet: Fleet) -> None:
    """Clients of two sets get the answers of their own set. In each step, gateways are reloaded; one gets other keys.

    No connection breaks, and no drained engine gets requests too early.
    """
    second = fleet.nodes[1]
    other = {"name": "other", "model": "tiny-b", "port": 5006, "accelerator": "cpu"}
    both = f"{{{{ {instances('tiny-a')} + ([{other}] if inventory_hostname == '{second.name}' else []) }}}}"
    fleet.gateway.site("--limit", fleet.limit, instances=both)
    fleet.wait_up()
    pid, before = second.engine_pid("other"), second.engine_pid()

    def change_keys() -> None:
        wait_for("the last engine was stopped", partial(_gone, second, before), 600)
        keys = [{"name": "load", "key": fleet.key}, {"name": "new", "key": "another-key-0000000"}]
        # This runs only the role gateway: the update holds the lock of this host, which is also a node.
        fleet.gateway.site("--tags", "gateway", gateway_keys=keys, instances=both)

    def update() -> None:
        disturbance = in_thread(change_keys)
        with reloads_in_each_step(fleet):
            fleet.update(instances=both, set={"main": "tiny-b"})
        disturbance.result(300)

    report = fleet.load(clients=4, other="I am tiny-b").during(update, seconds_after=3)
    unharmed(report)
    assert set(report.texts) == {"I am tiny-a", "I am tiny-b"}
    assert second.engine_pid("other") == pid and fleet.answers() == ["I am tiny-b."] * 2
    assert fleet.names() == ["main", "other", "tiny-b"]


def test_a_node_that_dies_loses_only_its_requests_in_flight(fleet: Fleet) -> None:
    fleet.wait_up()
    second = fleet.nodes[1]
    # The second node is a gateway, too, and its clients die with it.
    load = fleet.at_first_gateway().load()

    def die() -> None:
        subprocess.run(["docker", "kill", second.container], check=True, capture_output=True)
        wait_for("the second node is down", lambda: fleet.up() == [fleet.nodes[0].name], 60)

    report = load.during(die, seconds_after=10)
    assert len(report.failures) <= fleet.clients, str(report)
    assert report.succeeded > 10


def disturbed(
    fleet: Fleet, fault: Callable[[Node], AbstractContextManager[None]], sequences: int, **bounds: Any
) -> tuple[Report, str]:
    """Run an update whose first engine gets a fault when it has clients again. Returns load report and output."""
    canary = fleet.nodes[0]
    before, names = canary.engine_pid(), fleet.up()
    over = Event()

    def disturb() -> None:
        wait_for("another engine serves", lambda: _gone(canary, before) and fleet.up() == names, 600)
        faulty = canary.engine_pid()
        with fault(canary):
            wait_for("the swap has gone back", lambda: over.is_set() or _gone(canary, faulty), 600)

    said: list[str] = []

    def update() -> None:
        disturbance = in_thread(disturb)
        # The same model with other flags.
        entry = {"model": "controller:{{ demo_cache }}/models/tiny-a", "dtype": "float32", "max-model-len": 512}
        models = {"tiny-a": {**entry, "enforce-eager": True, "max-num-seqs": sequences}}
        try:
            updated = fleet.update(
                check=False, models=models, instances=instances("tiny-a"), update_watch_seconds=40, **bounds
            )
            said.append(updated)
        finally:
            over.set()
        disturbance.result(30)

    # The clients do not pause. So their requests suffice for a judgement, also if the machine is fast: 200 tokens in
    # the seconds between plan and drain, and many requests in flight during the watch.
    busy = replace(fleet, pause_seconds=0.0)
    return busy.load(clients=10).during(update), said[0]


def _most_connections(gateway: Node) -> int:
    """The connection limit of the gateway's process: another limit needs a reload."""
    said = haproxy.command(gateway, "show info")
    found = re.search(r"^Maxconn: (\d+)$", said, re.M)
    assert found, said
    return int(found[1])


@contextmanager
def _unable_to_load(node: Node) -> Iterator[None]:
    """Wait for the next engine, and stop its load until the end of the block."""
    serve = "'vllm serv[e]'"
    wait_for("the next engine loads", lambda: node.run(f"pgrep -f {serve}", check=False), 120)
    node.run(f"pkill -STOP -f {serve}")
    try:
        yield
    finally:
        node.run(f"pkill -CONT -f {serve}")


def _gone(node: Node, pid: int) -> bool:
    found = node.run("docker inspect --format '{{.State.Pid}}' vllm-main", check=False)
    return found != str(pid)
