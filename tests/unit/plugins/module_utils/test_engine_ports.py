# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that somebody has already."""

from __future__ import annotations

import socket

from ansible_collections.baremetal.inference.plugins.module_utils.engine_ports import port_problems
from ansible_collections.baremetal.inference.plugins.module_utils.registry.instances import Instance


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_an_engine_keeps_its_port_while_it_serves() -> None:
    """Firewall and gateways would take the new one before the engine does."""
    port, other = free_port(), free_port()
    instance = Instance(name="main", model="tiny-a", port=port)
    assert port_problems([instance], "127.0.0.1", {"main": port}) == []
    assert port_problems([instance], "127.0.0.1", {"main": None}) == []
    assert port_problems([instance], "127.0.0.1", {}) == []
    (problem,) = port_problems([instance], "127.0.0.1", {"main": other})
    assert str(other) in problem.message and "systemctl stop vllm@main" in problem.message
    assert (problem.key, problem.value) == ("port", port)


def test_a_port_that_another_instance_has() -> None:
    port = free_port()
    (problem,) = port_problems([Instance(name="next", model="tiny-a", port=port)], "127.0.0.1", {"main": port})
    assert "held by instance main, which the inventory no longer declares" in problem.message
