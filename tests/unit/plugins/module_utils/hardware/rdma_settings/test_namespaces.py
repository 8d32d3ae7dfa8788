# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routing rules, ARP and MTU on real network devices, in network namespaces of their own.

Two rails and a peer are connected by a bridge, all in one subnet. Three stages show what each setting does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import apply, rails
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.addresses import FIRST_TABLE
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import Difference
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import ARP
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    port,
)

SETUP = """
mount -t tmpfs none /run
mkdir /run/netns
ip netns add peer
ip -n peer link add bridge0 type bridge
ip -n peer link set bridge0 up
ip -n peer addr add 10.7.0.100/24 dev bridge0
for i in 0 1; do
  ip link add ens$i type veth peer name p$i netns peer
  ip -n peer link set p$i mtu 9000 master bridge0
  ip -n peer link set p$i up
  ip addr add 10.7.0.$((i + 1))/24 dev ens$i
  ip link set ens$i up
done
"""

ASK = 'for i in 1 2; do ip netns exec peer timeout 3 bash -c "echo x > /dev/udp/10.7.0.$i/9"; done; sleep 0.3'


def can_have_namespaces() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip"))):
        return False
    words = ["unshare", "--net", "--mount", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def run(command: Any) -> commands.Outcome:
    return commands.run(command, 20)


def ip(*words: str) -> Any:
    found = run(["ip", "-j", *words])
    assert found.code == 0, found.stderr
    return json.loads(found.stdout or "[]")


def answers() -> dict[str, str]:
    """The MAC with which each address answers the peer, and the rail by which packets from each address leave."""
    run(["ip", "-n", "peer", "neigh", "flush", "all"])
    run(["bash", "-c", ASK])
    macs = {entry["dst"]: entry.get("lladdr", "") for entry in ip("-n", "peer", "neigh")}
    names = {entry["address"]: entry["ifname"] for entry in ip("link")}
    leaves = {number: ip("route", "get", "10.7.0.100", "from", f"10.7.0.{number}")[0]["dev"] for number in (1, 2)}
    return {f"{number}": f"{names.get(macs[f'10.7.0.{number}'])} {leaves[number]}" for number in (1, 2)}


def inside() -> dict[str, Any]:
    """The stages, within the namespaces."""
    subprocess.run(["bash", "-e", "-c", SETUP], check=True)
    for _attempt in range(50):
        if all(link["operstate"] == "UP" for link in ip("link", "show") if link["ifname"].startswith("ens")):
            break
    found: dict[str, Any] = {"default": answers()}
    ports = rails.ports(facts(device(0, port(0)), device(1, port(1))))
    wanted = [
        Rail(one.key, "ethernet", address=f"10.7.0.{number + 1}/24", network="10.7.0.0/24", table=FIRST_TABLE + number)
        for number, one in enumerate(ports)
    ]

    def make(setting: str, after: Any) -> None:
        for number, (one, rail) in enumerate(zip(ports, wanted, strict=True)):
            ruled = Rail(**{**rail.__dict__, "sysctls": dict(ARP)})
            apply.apply(Path("/"), Difference(number, one.name, setting, None, after), ruled, one, "none", run)

    for key, value in ARP.items():
        make(key, value)
    found["arp"] = answers()
    states = [apply.state(Path("/"), rail, one, run) for rail, one in zip(wanted, ports, strict=True)]
    found["rules before"] = [state.rule for state in states]
    make("rule", True)
    make("rule", True)
    found["rules"] = answers()
    found["rules after"] = [
        apply.state(Path("/"), rail, one, run).rule for rail, one in zip(wanted, ports, strict=True)
    ]
    found["number of rules"] = len([rule for rule in ip("-4", "rule") if str(rule.get("table")) == str(FIRST_TABLE)])
    make("mtu", 9000)
    found["mtus"] = [link["mtu"] for link in ip("link") if link["ifname"].startswith("ens")]
    try:
        make("mtu", 70000)
    except apply.SettingError as error:
        found["refused"] = str(error)
    return found


@pytest.mark.skipif(not can_have_namespaces(), reason="only root can make network namespaces")
def test_each_address_answers_for_itself_and_packets_leave_by_their_own_rail() -> None:
    result = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, __file__],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    # By default, one rail answers for both addresses, and the first rail carries all packets.
    assert found["default"]["1"].split()[0] == found["default"]["2"].split()[0]
    assert {answer.split()[1] for answer in found["default"].values()} == {"ens0"}
    # With the settings of ARP, each address answers with its own rail. Packets still leave by the first rail.
    assert found["arp"] == {"1": "ens0 ens0", "2": "ens1 ens0"}
    # With the rules, each rail carries its own packets.
    assert found["rules"] == {"1": "ens0 ens0", "2": "ens1 ens1"}
    assert (found["rules before"], found["rules after"]) == ([False, False], [True, True])
    assert found["number of rules"] == 1
    assert found["mtus"] == [9000, 9000] and "mtu" in found["refused"]


if __name__ == "__main__":
    print(json.dumps(inside()))
