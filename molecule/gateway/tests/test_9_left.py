# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""decommission removes the gateway from a host that left the group; the host can become a gateway again."""

from __future__ import annotations

from typing import Any

import pytest
from gateway import Gateway
from node import changes, playbook, wait_for

SERVICES = "keepalived.service haproxy.service"
FLOATING = "198.51.100.77"


@pytest.mark.full
def test_decommission_removes_the_gateway_from_a_host_that_left_the_group(gateway: Gateway) -> None:
    node = gateway.node
    # No node of this scenario is in the group `gateway`: all have left the group.
    removal: dict[str, Any] = {"gateway": node.name, "confirm": node.name, "common_firewall_enabled": False}
    floating: dict[str, Any] = {
        "gateway_floating_address": f"{FLOATING}/32",
        "gateway_floating_interface": "eth0",
        "gateway_floating_source": node.address,
        "gateway_floating_peers": ["192.0.2.200"],
    }

    def remove(*options: str) -> str:
        return playbook(node.name, *options, name="baremetal.inference.decommission", **removal)

    def holds() -> bool:
        return FLOATING in node.run("ip -brief address show")

    def packages() -> set[str]:
        return set(node.run("dpkg-query --show --showformat '${db:Status-Status}/${Package}\\n'").split())

    try:
        node.site(**floating)
        wait_for("the gateway holds the floating address", holds, 30)
        # A file that this collection did not write.
        node.run("echo theirs > /etc/haproxy/own.http")
        assert {"haproxy", "keepalived"} <= set(node.run("apt-mark showhold").split())
        installed = packages()
        assert changes(remove("--check", "--diff")) > 0
        assert node.run(f"systemctl is-active {SERVICES}").split() == ["active"] * 2 and holds()
        assert changes(remove()) > 0
        assert not holds()
        assert node.run(f"systemctl is-active {SERVICES}", check=False).split() == ["inactive"] * 2
        assert node.run(f"systemctl is-enabled {SERVICES}", check=False).split() == ["disabled"] * 2
        assert node.run("ss -Hltn '( sport = :8000 or sport = :8404 )'") == ""
        ours = "grep -rls 'Managed by Ansible, role baremetal.inference.gateway' /etc"
        assert node.run(ours, check=False) == ""
        written = "/etc/haproxy/*.map /etc/apt/*/52-gateway /var/lib/haproxy/state /var/lib/inference/gateway.json"
        assert node.run(f"ls {written} 2>/dev/null", check=False) == ""
        assert node.run("cat /etc/haproxy/own.http") == "theirs"
        assert node.run("apt-mark showhold") == "" and packages() == installed
        assert changes(remove()) == 0
    finally:
        node.run("rm -f /etc/haproxy/own.http")
        node.site()
    assert gateway.ask().status == 200
