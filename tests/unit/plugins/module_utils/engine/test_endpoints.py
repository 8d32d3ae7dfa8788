# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoints of engines, and ports that are taken."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.engine import listeners
from ansible_collections.baremetal.inference.plugins.module_utils.engine.endpoints import (
    in_use,
    of,
    port_problems,
    running_instances,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import mark
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import Endpoint
from ansible_collections.baremetal.inference.plugins.module_utils.engine.listeners import Ownership, Process
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ...ports import free_port

OLD_KEY, NEW_KEY = "key-of-before", "key-of-today"


def found(instance: Instance, running: Mapping[str, Endpoint | None]) -> list[Problem]:
    return port_problems([instance], "127.0.0.1", running)


def test_a_changed_port_of_an_instance_must_be_free() -> None:
    port, other = free_port(), free_port()
    instance = Instance(name="main", model="tiny-a", port=port)
    assert found(instance, {"main": Endpoint("127.0.0.1", port)}) == []
    assert found(instance, {"main": None}) == []
    assert found(instance, {}) == []
    assert found(instance, {"main": Endpoint("127.0.0.1", other)}) == []
    with socket.create_server(("127.0.0.1", port)):
        # The instance's own engine has the port.
        assert found(instance, {"main": Endpoint("127.0.0.1", port)}) == []
        (problem,) = found(instance, {"main": Endpoint("127.0.0.1", other)})
    assert (problem.key, problem.value) == ("port", port) and "is taken by" in problem.message


def test_the_endpoint_of_an_engine_is_that_of_its_active_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, running = Paths(tmp_path), {"vllm@main.service", "vllm@broken.service"}
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if unit in running else "inactive")

    def keep(name: str, number: int, key: str) -> None:
        settings = Settings(address="192.0.2.11", environment={"VLLM_API_KEY": key})
        made = render(Instance(name, "tiny-a", 5005), [], StoredModel("/m", "r"), "i", settings, number=number)
        releases.stage(paths, name, made.release.id, lambda _number: made, pytest.fail)

    for name in ("main", "broken", "stopped"):
        keep(name, 1, OLD_KEY)
        keep(name, 2, NEW_KEY)
        # Release 2 is only staged.
        releases.activate(paths, name, 1)
    (paths.release("broken", 1) / releases.RELEASE_FILE).write_text("{")
    serves, comes = (Endpoint("192.0.2.11", 5005, (mark(key),)) for key in (OLD_KEY, NEW_KEY))
    assert running_instances(paths) == {"main": serves, "broken": None}
    assert OLD_KEY not in str(serves)
    assert of(paths, "main", [1, None, 2, 1, 9]) == (serves, comes)
    assert [in_use(paths, name) for name in ("main", "broken", "stopped")] == [(serves,), (), ()]
    # In a swap, the unit may be down for a moment.
    swaps.write(paths, "stopped", swaps.Swap(1, 2, "run", "2026-11-25T12:00:00Z"))
    assert in_use(paths, "stopped") == (serves, comes)


def test_a_port_that_another_instance_has_is_a_problem() -> None:
    port = free_port()
    (problem,) = found(Instance(name="next", model="tiny-a", port=port), {"main": Endpoint("127.0.0.1", port)})
    assert "held by instance main, which the inventory no longer declares" in problem.message


def test_the_bridge_of_a_declared_instance_is_named_as_the_holder_of_a_port() -> None:
    port = free_port()
    bridged = Instance(name="main", model="tiny-a", port=free_port(), bridge_port=port)
    running = {"main": Endpoint("127.0.0.1", bridged.port), "main_bridge": Endpoint("127.0.0.1", port)}
    other = Instance(name="next", model="tiny-a", port=port)
    (problem,) = port_problems([bridged, other], "127.0.0.1", running)
    assert problem.message.startswith("is held by instance main_bridge: stop that instance")


def test_a_bridge_port_that_another_process_has_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = int(server.getsockname()[1])
        instance = Instance(name="main", model="tiny-a", port=5005, bridge_port=taken)
        serves = {"main": Endpoint("127.0.0.1", 5005)}
        (problem,) = found(instance, serves)
        assert problem.key == "bridge_port" and "is taken by" in problem.message
        assert found(instance, {**serves, "main_bridge": Endpoint("127.0.0.1", taken)}) == []


def test_the_gang_port_must_be_free() -> None:
    port, taken = free_port(), free_port()
    gang = Instance("big", "tiny-a", port, nodes=("n1", "n2"), gang_port=taken, rendezvous_port=free_port())
    with socket.create_server(("127.0.0.1", taken)):
        (problem,) = port_problems([gang], "127.0.0.1", {}, "127.0.0.1")
        # The instance's own supervisor has the port.
        assert port_problems([gang], "127.0.0.1", {"big": Endpoint("127.0.0.1", port)}, "127.0.0.1") == []
    assert (problem.key, problem.value) == ("gang_port", taken) and "is taken by" in problem.message


def test_the_ports_of_an_executor_must_be_free_as_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = int(server.getsockname()[1])
        plain = Instance("big", "tiny-a", free_port(), nodes=("n1", "n2"), gang_port=free_port())
        gang = replace(plain, rendezvous_port=taken - 1, executor="ray")
        found = port_problems([gang], "127.0.0.1", {}, "127.0.0.1")
        problem = next(one for one in found if f": port {taken} is taken by pid {os.getpid()} (" in one.message)
        assert (problem.key, problem.value) == ("rendezvous_port", taken - 1)
        assert problem.message.startswith(f"is the first of the ports to {taken + 126} that executor ray needs: port ")
        assert problem.message.endswith("): stop that process, or take another rendezvous_port")
        without = port_problems([replace(gang, executor="")], "127.0.0.1", {}, "127.0.0.1")
        assert not [one for one in without if str(taken) in one.message]


def test_a_process_with_many_ports_of_an_executor_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {29510: 7, 29511: 7, 29512: 8, 29514: 8, 29637: 9}

    def ownership(port: int, _address: str, init_pid: int | None) -> Ownership:
        return Ownership(ours=False, strangers=[Process(owners[port], "nginx")] if port in owners else [])

    monkeypatch.setattr(listeners, "ownership", ownership)
    monkeypatch.setattr(listeners, "ports", lambda: {*owners})
    gang = Instance("big", "tiny-a", 5010, nodes=("n1", "n2"), gang_port=5110, rendezvous_port=29510, executor="ray")
    serves = {"main": Endpoint("127.0.0.1", 29520), "gone": Endpoint("127.0.0.1", 29521)}
    messages = [one.message for one in port_problems([gang], "127.0.0.1", serves, "127.0.0.1")]
    begin = "is the first of the ports to 29637 that executor ray needs: port "
    advice = "or take another rendezvous_port"
    gone = ", which the inventory no longer declares: stop that instance, "
    assert messages == [
        "is taken by pid 7 (nginx): stop that process, or give the instance another port",
        f"{begin}29512 is taken by pid 8 (nginx): stop that process, {advice}",
        f"{begin}29520 is held by instance main{gone}{advice}",
        f"{begin}29521 is held by instance gone{gone}{advice}",
        f"{begin}29637 is taken by pid 9 (nginx): stop that process, {advice}",
    ]
