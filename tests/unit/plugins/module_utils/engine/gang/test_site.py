# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the members of a gang declare: every mistake between them, the gang, and its firewall."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import site
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.site import Site

BIG: dict[str, Any] = {
    "name": "big",
    "model": "llama",
    "port": 5010,
    "nodes": ["gpu-01", "gpu-02"],
    "gang_port": 5110,
    "rendezvous_port": 29510,
}
ODD_KEYS: dict[Any, Any] = {**BIG, 1: "a", "x": "b"}
GROUP = ["gpu-01", "gpu-02", "gpu-03"]


def variables(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    hosts = {
        name: {
            "inference_address": f"192.0.2.{number}",
            "inference_fabric_address": f"10.0.0.{number}",
            "instances": [BIG],
        }
        for number, name in enumerate(GROUP, 1)
    }
    for name, change in changes.items():
        hosts[name.replace("_", "-")].update(change)
    return hosts


def of(node: str = "gpu-01", **changes: dict[str, Any]) -> Site:
    hosts = variables(**changes)
    return Site.from_dict(site.collect(hosts[node]["instances"], hosts, GROUP, node))


def found(**changes: dict[str, Any]) -> str:
    return found_on("gpu-01", **changes)


def found_on(node: str, **changes: dict[str, Any]) -> str:
    hosts = variables(**changes)
    own = [one for one in hosts[node]["instances"] if node in one.get("nodes", [node])]
    return "\n".join(map(str, site.problems(own, of(node, **changes))))


def test_only_the_variables_of_members_are_read() -> None:
    given = of()
    assert list(given.hosts) == ["gpu-01", "gpu-02"] and given.group == tuple(GROUP)
    assert given.hosts["gpu-02"].address == "10.0.0.2"
    assert site.collect([BIG], variables(), GROUP, "gpu-03") == {}
    assert site.collect([{"name": "main"}], {}, GROUP, "gpu-01") == {}
    assert of(gpu_02={"inference_fabric_address": ""}).hosts["gpu-02"].address == "192.0.2.2"


@pytest.mark.parametrize(
    ("sysctl", "port_range"),
    [
        (None, ""),
        ({"vm.swappiness": 1}, ""),
        ({"net.ipv4.ip_local_port_range": None}, ""),
        ({"net.ipv4.ip_local_port_range": "1024 60999"}, "1024 60999"),
        ({"net/ipv4/ip_local_port_range": "1024 60999"}, "1024 60999"),
    ],
)
def test_the_port_range_that_this_run_sets_is_read_from_its_sysctl(
    sysctl: dict[str, Any] | None, port_range: str
) -> None:
    given = site.collect([BIG], variables(), GROUP, "gpu-01", sysctl)
    assert site.Site.from_dict(given).port_range == port_range


def test_a_sound_gang_has_no_mistake_on_any_member() -> None:
    assert found() == found_on("gpu-02") == ""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gpu_02": {"inference_fabric_address": "10.0.0.1"}}, "is the address of gpu-01 and of gpu-02"),
        (
            {"gpu_02": {"inference_fabric_address": "10.0.0.300"}},
            "is set for gpu-02, and is no IP address that other nodes can reach",
        ),
        (
            {"gpu_02": {"inference_fabric_address": "127.0.0.1"}},
            "inference_fabric_address: '127.0.0.1': is set for gpu-02",
        ),
        ({"gpu_02": {"inference_fabric_address": "fd00::2"}}, "gpu-01 has an IPv4 and gpu-02 an IPv6 address"),
        (
            {"gpu_02": {"inference_fabric_address": "", "inference_address": ""}},
            "gpu-02 has no address for other nodes: set inference_fabric_address of gpu-02",
        ),
        ({"gpu_02": {"instances": []}}, "gpu-02 does not declare this instance"),
        ({"gpu_02": {"instances": [{**BIG, "port": 5011}]}}, "port: differs between gpu-01 and gpu-02"),
        ({"gpu_02": {"instances": [ODD_KEYS]}}, "1, x: differs between gpu-01 and gpu-02"),
        ({"gpu_02": {"instances": [BIG, {"name": "x", "port": 5110}]}}, "is port of instance x on gpu-02"),
        # gpu-02's own check reports the list in place of a port.
        (
            {"gpu_02": {"instances": [BIG, {"name": "x", "port": [5110], "bridge_port": 5110}]}},
            "is bridge_port of instance x on gpu-02",
        ),
        (
            {"gpu_02": {"instances": [BIG, {"name": "x", "bridge_port": 29510}]}},
            "is bridge_port of instance x on gpu-02",
        ),
        (
            {"gpu_01": {"instances": [{**BIG, "nodes": ["gpu-01", "gpu-04"]}]}},
            "gpu-04 is no node of the group inference: did you mean 'gpu-0",
        ),
    ],
)
def test_each_mistake_between_members_is_reported(changes: dict[str, dict[str, Any]], text: str) -> None:
    assert text in found(**changes)


def test_all_mistakes_are_reported_at_once() -> None:
    changes = {
        "inference_fabric_address": "10.0.0.1",
        "instances": [{**BIG, "port": 5011}, {"name": "x", "port": 5110}],
    }
    text = found(gpu_02=changes)
    for part in ("is the address of gpu-01 and of gpu-02", "port: differs", "is port of instance x"):
        assert part in text


def test_another_gang_of_the_member_needs_other_ports() -> None:
    other = {**BIG, "name": "large", "nodes": ["gpu-02", "gpu-03"]}
    assert "is gang_port of instance large on gpu-02" in found(gpu_02={"instances": [BIG, other]})
    # On a node outside the gang, the ports are free.
    assert found(gpu_02={"instances": [BIG, {**other, "nodes": ["gpu-01", "gpu-03"]}]}) == ""


@given(order=st.permutations(GROUP), data=st.data())
def test_every_order_of_nodes_gives_each_node_its_rank(order: list[str], data: st.DataObject) -> None:
    big = {**BIG, "nodes": order}
    hosts = {name: {**each, "instances": [big]} for name, each in variables().items()}
    node = data.draw(st.sampled_from(GROUP))
    given = Site.from_dict(site.collect([big], hosts, GROUP, node))
    gang = site.gang("big", order, 5110, 29510, given)
    assert gang.me.node == node and gang.leader.node == order[0]
    assert [member.node for member in gang.members] == order
    assert gang.me.address == hosts[node]["inference_fabric_address"]
    assert site.problems([big], given) == []


def test_the_firewall_opens_the_ports_of_a_gang_to_its_members_alone() -> None:
    (rule,) = site.rules([BIG, {"name": "main", "port": 5005}], of("gpu-02"))
    assert rule == {"name": "gang big", "port": [5110, 29510, "32768-60999"], "sources": ["10.0.0.1"]}
    wrong = of("gpu-02", gpu_01={"inference_fabric_address": "10.0.0.300"})
    assert site.rules([BIG], wrong) == []
    problems: list[Any] = []
    parsed = nftables._rule(1, rule, problems, nftables.INBOUND)
    assert parsed and not problems and parsed.ports == ((5110, 5110), (29510, 29510), (32768, 60999))


def test_the_executor_ray_needs_more_ports() -> None:
    ray = {**BIG, "executor": "ray"}
    (rule,) = site.rules([ray], of("gpu-02"))
    assert rule["port"] == [5110, "29510-29629", "32768-60999"]
    problems: list[Any] = []
    assert nftables._rule(1, rule, problems, nftables.INBOUND) and not problems
    other = {"name": "x", "port": 29600}
    text = found(gpu_01={"instances": [ray]}, gpu_02={"instances": [ray, other]})
    assert text == (
        "instance big: rendezvous_port: 29510: is the first of the ports to 29637 that executor ray needs: "
        "port 29600 is port of instance x on gpu-02: take another rendezvous_port, or another port there"
    )
    assert "executor: differs between gpu-01 and gpu-02" in found(gpu_02={"instances": [ray]})


def test_engines_of_a_gang_connect_to_the_engines_of_all_members() -> None:
    """Engines also connect to engines of their own node, but not to gang_port, where supervisors listen."""
    (rule,) = site.engine_rules([BIG, {"name": "main", "port": 5005}], of("gpu-01"))
    assert rule == {"name": "gang big", "port": [29510, "32768-60999"], "destinations": ["10.0.0.1", "10.0.0.2"]}
    problems: list[Any] = []
    assert nftables._rule(1, rule, problems, nftables.OF_ENGINES) and not problems
    ray, here = site.engine_rules([{**BIG, "executor": "ray"}], of("gpu-01"))
    assert (ray["port"], ray["destinations"]) == (["29510-29629", "32768-60999"], ["10.0.0.1", "10.0.0.2"])
    # Some of the executor's processes connect only to processes of their own node.
    own = {"port": "29510-29637", "destinations": ["127.0.0.1", "::1", "10.0.0.1"]}
    assert here == {"name": "gang big on this node", **own}
    assert nftables._rule(1, here, problems, nftables.OF_ENGINES) and not problems


def test_an_absent_instance_is_no_gang() -> None:
    absent = {**BIG, "state": "absent", "nodes": ["gpu-01", "gpu-09"]}
    assert site.collect([absent], variables(), GROUP, "gpu-01") == {}
    assert site.problems([absent], Site()) == [] and site.gangs_of([absent, "odd", {**BIG, "nodes": [1]}]) == []


def test_a_damaged_site_is_refused() -> None:
    with pytest.raises(ValueError, match="hosts of gangs"):
        Site.from_dict({"hosts": {"gpu-01": {}}})
    assert Site.from_dict({}) == Site()
