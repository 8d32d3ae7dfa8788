# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role rdma on two rails of InfiniBand: addresses, routing rules and refusals.

ifupdown (Debian 12) and networkd (Debian 13) configure the rails: virtual Ethernet, with RDMA devices that are files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rail_devices
from node import PROJECT, Node, changed_tasks, changes, wait_for

pytestmark = pytest.mark.full

MANAGERS = {"deb12": "ifupdown", "deb13": "networkd"}

SETUP = """
set -e
mount -o remount,rw /proc/sys
mkdir -p /etc/systemd/network
printf '[Match]\\nName=eth* end*\\n[Link]\\nUnmanaged=yes\\n' >/etc/systemd/network/00-test.network
"""

OWNERS = {
    "ifupdown": """
      DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes ifupdown >/dev/null
      printf 'auto lo\\niface lo inet loopback\\nsource /etc/network/interfaces.d/*\\n' >/etc/network/interfaces
    """,
    "networkd": """
      command -v networkctl || DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes systemd >/dev/null
      systemctl start systemd-networkd
    """,
}

CLEAN = """
systemctl stop systemd-networkd.socket systemd-networkd
rm -f /etc/systemd/network/00-test.network
ip rule del table 1001; ip rule del table 1002
"""

WANTED: dict[str, Any] = {"rdma_rails": [{"netdev": "ib0"}, {"netdev": "ib1"}], "rdma_ets": {}}


@pytest.fixture
def rails(node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(node, "playbook", str(PROJECT / "molecule/shared/rails.yml"))
    node.run("apt-get -qq update")
    node.run(OWNERS[MANAGERS[node.name]])
    rail_devices.add(node, 2)
    node.run(SETUP)
    yield node
    rail_devices.remove(node, 2)
    node.run(CLEAN, check=False)


def assert_addresses_and_rules(node: Node) -> None:
    for number in (0, 1):
        (link,) = json.loads(node.run(f"ip -j -4 address show dev ib{number}"))
        assert [entry["local"] for entry in link["addr_info"]] == [f"10.7.0.{number + 1}"]
        (route,) = json.loads(node.run(f"ip -j route get 10.7.0.100 from 10.7.0.{number + 1}"))
        assert route["dev"] == f"ib{number}", route
        assert node.run(f"cat /proc/sys/net/ipv4/conf/ib{number}/arp_ignore") == "1"


def test_rails_get_addresses_and_rules_and_mistakes_are_refused(rails: Node, tmp_path: Path) -> None:
    wanted = {**WANTED, "rdma_network_manager": MANAGERS[rails.name]}
    foreseen, _output = changed_tasks(rails, tmp_path, "--check", **wanted)
    assert not rails.run("ls -d /etc/*/*/60-inference-rdma*", check=False)
    done, _output = changed_tasks(rails, tmp_path, **wanted)
    assert foreseen == done != set()
    assert_addresses_and_rules(rails)
    for options in ((), ("--check",)):
        output = rails.site(*options, **wanted)
        assert not changes(output), output
    assert rails.run("inferctl rdma check") == "rails with all recorded settings: 2"

    rails.run("ip rule del table 1001")
    assert "rail 0 (mlx5_0/1): rule: false -> true" in rails.run("inferctl rdma check", check=False)
    rails.run("inferctl rdma apply")
    assert_addresses_and_rules(rails)
    if MANAGERS[rails.name] == "networkd":
        rails.run("networkctl reconfigure ib1 && systemctl restart systemd-networkd")
        wait_for("networkd has configured the rails", lambda: "configured" in rails.run("networkctl status ib1"), 30)
        assert_addresses_and_rules(rails)

    wrong: dict[str, Any] = {
        "rdma_addresses": ["10.7.0.1/24", "10.7.0.1/24"],
        "rdma_ets": {0: 50, 3: 50},
        "rdma_mtu": 9000,
        "rdma_ipoib_mode": "datagram",
        "rdma_dscp": 30,
    }
    output = " ".join(rails.site(check=False, **{**wanted, **wrong}).split())
    for words in (
        "is the address of two rails",
        "rdma_ets: ",
        "rdma_dscp: 30: has no meaning on InfiniBand",
        "nothing was changed",
    ):
        assert words in output, output
    assert_addresses_and_rules(rails)
    assert rails.run("inferctl rdma check") == "rails with all recorded settings: 2"
