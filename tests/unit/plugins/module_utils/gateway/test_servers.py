# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines a gateway has, read from HAProxy's statistics."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import servers

STAT = """# pxname,svname,status
api,FRONTEND,OPEN
set_main,n1,UP
set_main,n2,DOWN 1/2
set_main,n4,UP 1/3
set_main,main_next.n1,DOWN (agent)
set_main,main_next.n5,UP
set_main,main_bridge.n2,UP
set_main,BACKEND,UP
set_side,n1,UP
model_tiny,main.n3,UP
"""


def test_an_instance_has_a_server_in_its_set_or_in_another_backend() -> None:
    assert [servers.has_server(STAT, host, "main") for host in ("n1", "n2", "n3", "n5")] == [True, True, True, False]
    assert not servers.has_server(STAT, "n2", "side") and not servers.has_server(STAT, "n1", "mai")


def test_a_host_is_up_if_one_of_its_servers_is_up() -> None:
    # A bridge counts by its own name.
    assert servers.up_hosts(STAT, "main") == ["main_bridge.n2", "n1", "n4", "n5"]
    assert servers.up_hosts(STAT, "mai") == []
