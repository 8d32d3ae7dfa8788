# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that somebody has already, and what must not move under an engine that serves."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.engine.endpoints import (
    Endpoint,
    differing,
    endpoint_problems,
    running_instances,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

OLD_KEY, NEW_KEY = "key-of-before", "key-of-today"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def found(
    instance: Instance, running: Mapping[str, Endpoint | None], key: str = "", gateways: bool = True
) -> list[Problem]:
    return endpoint_problems([instance], "127.0.0.1", key, running, gateways=gateways)


@pytest.mark.parametrize("gateways", [True, False])
def test_an_engine_keeps_its_port_while_it_serves(gateways: bool) -> None:
    """Firewall and gateways would take the new one before the engine does."""
    port, other = free_port(), free_port()
    instance = Instance(name="main", model="tiny-a", port=port)
    assert found(instance, {"main": Endpoint("127.0.0.1", port)}, gateways=gateways) == []
    assert found(instance, {"main": None}, gateways=gateways) == []
    assert found(instance, {}, gateways=gateways) == []
    (problem,) = found(instance, {"main": Endpoint("127.0.0.1", other)}, gateways=gateways)
    assert str(other) in problem.message and "systemctl stop vllm@main" in problem.message
    assert (problem.key, problem.value) == ("port", port)


def test_an_engine_keeps_address_and_key_while_it_serves_behind_a_gateway() -> None:
    """All at once; and no message shows a key."""
    instance = Instance(name="main", model="tiny-a", port=5005)
    serves = Endpoint("192.0.2.11", 5006, OLD_KEY)
    problems = found(instance, {"main": serves}, NEW_KEY)
    assert [(problem.key, problem.value) for problem in problems] == [
        ("port", 5005),
        ("address", "127.0.0.1"),
        ("vllm_api_key", None),
    ]
    _port, address, key = map(str, problems)
    assert (
        "Leave 192.0.2.11 (inference_address); or, on the node, inferctl drain main, systemctl stop vllm@main"
        in address
    )
    assert "on all nodes of the replica set" in key and "no way without that interruption" in key
    assert not any(secret in f"{problems}{serves}" for secret in (OLD_KEY, NEW_KEY))
    # Without gateways, an update may bring both.
    assert [problem.key for problem in found(instance, {"main": serves}, NEW_KEY, gateways=False)] == ["port"]


@pytest.mark.parametrize(
    ("listens", "asked", "reached"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "192.0.2.11", False),
        ("192.0.2.11", "127.0.0.1", False),
        ("192.0.2.11", "0.0.0.0", False),
        ("0.0.0.0", "192.0.2.11", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("0.0.0.0", "2001:db8::11", False),
        ("0.0.0.0", "::", False),
        ("::", "2001:db8::11", True),
        ("::", "192.0.2.11", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
    ],
)
def test_who_listens_everywhere_answers_at_every_address(listens: str, asked: str, reached: bool) -> None:
    assert differing(Endpoint(listens, 1), Endpoint(asked, 1), gateways=True) == ([] if reached else ["address"])


@pytest.mark.parametrize(
    ("wants", "sent", "reached"),
    [("", "", True), ("", "new", True), ("old", "old", True), ("old", "new", False), ("old", "", False)],
)
def test_who_wants_no_key_answers_every_one(wants: str, sent: str, reached: bool) -> None:
    engine, asked = Endpoint("::", 1, wants), Endpoint("::", 1, sent)
    assert differing(engine, asked, gateways=True) == ([] if reached else ["vllm_api_key"])


def test_what_runs_is_read_off_its_active_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, running = Paths(tmp_path), {"vllm@main.service", "vllm@broken.service"}
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if unit in running else "inactive")

    def keep(name: str, number: int, key: str) -> None:
        settings = Settings(address="192.0.2.11", environment={"VLLM_API_KEY": key})
        made = render(Instance(name, "tiny-a", 5005), [], StoredModel("/m", "r"), "i", settings, number=number)
        releases.stage(paths, name, made.release.id, lambda _number: made, pytest.fail)

    for name in ("main", "broken", "stopped"):
        keep(name, 1, OLD_KEY)
        keep(name, 2, NEW_KEY)
        # The second is staged, and pending.
        releases.activate(paths, name, 1)
    (paths.release("broken", 1) / releases.RELEASE_FILE).write_text("{")
    assert running_instances(paths) == {"main": Endpoint("192.0.2.11", 5005, OLD_KEY), "broken": None}


def test_a_port_that_another_instance_has() -> None:
    port = free_port()
    (problem,) = found(Instance(name="next", model="tiny-a", port=port), {"main": Endpoint("127.0.0.1", port)})
    assert "held by instance main, which the inventory no longer declares" in problem.message


def test_a_bridge_s_port_that_somebody_has() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = int(server.getsockname()[1])
        instance = Instance(name="main", model="tiny-a", port=5005, bridge_port=taken)
        serves = {"main": Endpoint("127.0.0.1", 5005)}
        (problem,) = found(instance, serves)
        assert problem.key == "bridge_port" and "is taken by" in problem.message
        assert found(instance, {**serves, "main_bridge": Endpoint("127.0.0.1", taken)}) == []
