# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets of RDMA from one end of a cable to the other: results of perftest with their judgement, and the DSCP.

The ends are RoCE devices in software on two connected network devices of the one machine: RoCE in software does not
work in network namespaces. Routing rules send packets between the two addresses over the cable.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

import pytest
from virtual import Machine

pytestmark = pytest.mark.full

NO_CLOCK = "the file has neither bandwidth nor latency"
"""The message of `inferctl rdma judge` about a result without a number."""

SETUP = """
set -e
modprobe rdma_rxe
# With given addresses, which udev does not change.
ip link add pair0 address 02:00:00:00:08:00 type veth peer name pair1 address 02:00:00:00:08:01
for own in 0 1; do
  echo 1 >/proc/sys/net/ipv4/conf/pair$own/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/pair$own/rp_filter
  ip link set pair$own mtu 4200 up
  ip address add 10.8.$own.1/32 dev pair$own
done
for own in 0 1; do
  other=$((1 - own))
  ip neighbour replace 10.8.$other.1 lladdr 02:00:00:00:08:0$other dev pair$own nud permanent
  ip route add 10.8.$other.1 dev pair$own src 10.8.$own.1 table 208$own
  ip rule add priority 10 iif pair$own to 10.8.$own.1 table local protocol kernel
  ip rule add priority 20 from 10.8.$own.1 to 10.8.$other.1 table 208$own protocol kernel
done
ip rule add priority 25 iif lo to 10.8.1.1 table 2080 protocol kernel
ip rule add priority 30 table local protocol kernel
ip rule del priority 0
for own in 0 1; do
  rdma link add end$own type rxe netdev pair$own
done
echo 'iifname "pair*" accept' >/etc/nftables.d/99-pair.nft
systemctl reload nftables
nft -f - <<'NFT'
table ip wire {
  counter marked {}
  counter plain {}
  chain arriving {
    type filter hook prerouting priority raw
    iifname "pair*" udp dport 4791 ip dscp 26 counter name marked accept
    iifname "pair*" udp dport 4791 ip dscp 0 counter name plain
  }
}
NFT
"""

CLEAN = """
rm /etc/nftables.d/99-pair.nft
systemctl reload nftables
nft delete table ip wire
ip rule add priority 0 table local protocol kernel
for priority in 10 10 20 20 25 30; do ip rule del priority $priority; done
ip link del pair0
"""

TEST = """
cd /tmp && rm -f server client result
timeout 300 {program} -F -d end1 -x {gids[1]} {options} >server 2>&1 &
# A client that comes before the server listens fails at once. The server ends after its first client.
until timeout 60 {program} -F -d end0 -x {gids[0]} {options} --report_gbits --out_json --out_json_file=result \\
  10.8.1.1 >client 2>&1
do
  kill -0 $! 2>/dev/null || {{ cat client server; exit 1; }}
  sleep 1
done
wait
"""


class Pair:
    """The machine with both ends of the cable."""

    def __init__(self, machine: Machine, gids: list[int]) -> None:
        self.machine = machine
        self.gids = gids

    def run(self, program: str, options: str) -> str:
        """Run a program of perftest at both ends. Returns the file of its result."""
        self.machine.run(TEST.format(program=program, options=options, gids=self.gids))
        return self.machine.run("cat /tmp/result")

    def judged(self, program: str, options: str, number: str) -> tuple[float, str]:
        """The number of a result by its name, and what `inferctl rdma judge` said with its exit code.

        At its end, perftest measures the processor's clock for 0.2 s. If other programs of the host interrupt the
        emulated processor meanwhile, perftest writes 0, inf or nan. Then this method checks that the judgement names
        the missing number, and measures again, up to five measurements in all.
        """
        for _attempt in range(5):
            result = self.run(program, options)
            match = re.search(rf"{number}\W+([0-9.]+|inf|nan)", result)
            assert match, result
            found = float(match[1])
            said = self.machine.run("inferctl rdma judge /tmp/result; echo exit $?")
            if 0 < found < math.inf:
                break
            assert NO_CLOCK in said and said.endswith("exit 4"), said
        return found, said

    def arrived(self) -> dict[str, int]:
        """The packets of RDMA that arrived by the cable since the last question, by their marks."""
        said = json.loads(self.machine.run("nft -j reset counters table ip wire"))["nftables"]
        return {entry["counter"]["name"]: entry["counter"]["packets"] for entry in said if "counter" in entry}


def require_number(found: float) -> None:
    """Skip the rest of a test whose last measurement has no number."""
    if not 0 < found < math.inf:
        pytest.skip("the emulated processor was interrupted in each of five measurements: no result has a number")


@pytest.fixture(scope="module")
def pair(machine: Machine) -> Iterator[Pair]:
    machine.module("baremetal.inference.node_tool")
    machine.run(SETUP)
    ports = {port["name"]: port for port in json.loads(machine.run("inferctl rdma show --json"))["ports"]}
    yield Pair(machine, [ports[f"end{number}/1"]["gid_index"] for number in (0, 1)])
    machine.run(CLEAN)


def test_the_ladder_climbs_to_its_last_step(pair: Pair) -> None:
    """The last step of the ladder warns, because the machine has no GPU."""
    steps = json.loads(pair.machine.run("inferctl doctor --rdma --json", check=False))["steps"]
    found = {step["name"]: step["status"] for step in steps}
    assert [found[name] for name in ("rails", "links", "packets", "gids", "gpudirect")] == ["ok"] * 4 + ["warn"], steps


def test_a_bandwidth_is_judged_by_the_rate_of_the_port(pair: Pair) -> None:
    pair.arrived()
    found, said = pair.judged("ib_write_bw", "-n 50", "BW_average")
    # 50 messages of 64 KiB, in packets of 4096 bytes.
    arrived = pair.arrived()
    assert arrived["plain"] > 50 * 16 and not arrived["marked"]
    require_number(found)
    assert re.match(rf"end0: bad: {found:g} Gb/s, [0-9]+% of the [0-9.]+ Gb/s that the rail can carry", said), said
    assert said.endswith("exit 1")


def test_a_latency_is_judged(pair: Pair) -> None:
    found, said = pair.judged("ib_write_lat", "-n 20 -s 8", "t_typical")
    require_number(found)
    assert re.match(rf"end0: bad: {found:g} microseconds: a good rail needs fewer than 3", said), said


def test_the_traffic_class_of_nccl_is_the_dscp_on_the_wire(pair: Pair) -> None:
    """The environment of a gang has NCCL_IB_TC=106 for the DSCP 26. NCCL and perftest set it for their connections."""
    pair.arrived()
    pair.run("ib_write_bw", "-n 20 --tclass=106")
    assert pair.arrived()["marked"] > 20 * 16


def test_the_default_of_rdma_cm_is_the_dscp_on_the_wire(pair: Pair) -> None:
    base = "/sys/kernel/config/rdma_cm"
    pair.machine.run(
        f"modprobe rdma_cm; for end in end0 end1; do mkdir -p {base}/$end; "
        f"echo 106 >{base}/$end/ports/1/default_roce_tos; done"
    )
    pair.arrived()
    pair.run("ib_write_bw", "-n 20 -R")
    assert pair.arrived()["marked"] > 20 * 16
