# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gangs: from the inventory to the roles' variables, and the comparison of the members."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]

BIG = {"name": "big", "model": "m", "nodes": ["b", "a"], "port": 5010, "gang_port": 5110, "rendezvous_port": 29510}
MAIN = {"name": "main", "model": "m", "port": 5005}
HOSTS = """
[inference]
a inference_address=192.0.2.1 inference_fabric_address=10.0.0.1
b inference_address=192.0.2.2
c inference_address=192.0.2.3
"""

Staged = Callable[..., Any]


def say(text: str) -> dict[str, Any]:
    return {"ansible.builtin.debug": {"msg": f"{{{{ inventory_hostname }}}} {text}."}}


@pytest.mark.once
def test_only_the_members_of_a_gang_have_its_instance_and_firewall_rules(staged: Staged) -> None:
    rules = "common_firewall_allow | selectattr('name', 'eq', 'gang big') | map(attribute='sources') | flatten | join"
    engines = "common_firewall_engine_allow | map(attribute='destinations') | flatten | join('/')"
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {"instances": [MAIN, BIG], "models": {"m": {"model": "/m"}}, "gang_key": "0123456789abcdef"},
        "tasks": [
            say("has {{ vllm_instances | map(attribute='name') | join(' and ') }}"),
            say("opens to {{ " + rules + " }}"),
            say("lets engines connect to {{ " + engines + " }}"),
            say("knows {{ vllm_gangs.hosts | default({}) | dict2items | map(attribute='value.address') | join('/') }}"),
        ],
    }
    succeeded, output = staged([]).run([play], HOSTS)
    assert succeeded, output
    for text in (
        *("a has main and big.", "b has main and big.", "c has main."),
        *("a opens to 192.0.2.2.", "b opens to 10.0.0.1.", "c opens to ."),
        *("a lets engines connect to 192.0.2.2/10.0.0.1.", "c lets engines connect to ."),
        *("a knows 10.0.0.1/192.0.2.2.", "c knows ."),
    ):
        assert text in output, output


def test_the_checks_of_a_gang_get_the_range_of_ports_that_the_run_sets(staged: Staged) -> None:
    """`common_due` is defined, with any value, once the checks of the role common have run. Before, the range is empty:
    the range of the node counts."""
    range_of_ports = {"net.ipv4.ip_local_port_range": "1024 60999"}
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {**SITE, "common_sysctl": range_of_ports, "common_sysctl_enabled": "{{ inventory_hostname != 'b' }}"},
        "tasks": [
            say("leaves {{ vllm_gangs.port_range }}"),
            {"ansible.builtin.set_fact": {"common_due": False}},
            say("sets {{ vllm_gangs.port_range }}"),
        ],
    }
    succeeded, output = staged([]).run([play], HOSTS, "--limit", "a,b")
    assert succeeded, output
    for text in ("a leaves .", "b leaves .", "a sets 1024 60999.", "b sets ."):
        assert text in output, output


@pytest.mark.once
def test_a_node_without_instances_opens_nothing(staged: Staged) -> None:
    task = say("opens {{ common_firewall_allow | length }} ports")
    play = {"hosts": "inference", "roles": ["site_variables"], "tasks": [task]}
    succeeded, output = staged([]).run([play], "[inference]\na ansible_host=192.0.2.1")
    assert succeeded and "a opens 0 ports." in output, output


def part(rank: int, node: str, revision: str, name: str = "big", nodes: str = "ba") -> dict[str, Any]:
    shared = {"members": [[each, f"10.0.0.{each}"] for each in nodes], "revision": revision, "environment": {}}
    network = {"interface": "eth0", "mtu": 1500}
    return {"name": name, "node": node, "rank": rank, "shared": shared, "devices": ["L4"], "network": network}


def compare(staged: Staged, revision: str) -> tuple[bool, str]:
    """The comparison on all hosts. b leads `big` over b and a; c leads `huge` over c and a, whose members are equal."""
    plans = {
        "a": {"gangs": [part(1, "a", revision), part(1, "a", "abc", "huge", "ca")]},
        "b": {"gangs": [part(0, "b", "abc")]},
        "c": {"gangs": [part(0, "c", "abc", "huge", "ca")]},
    }
    role = {"name": "baremetal.inference.vllm", "tasks_from": "gangs", "rolespec_validate": False}
    play = {
        "hosts": "inference",
        "vars": {"plans": plans},
        "tasks": [
            {"ansible.builtin.set_fact": {"vllm_plan": "{{ plans[inventory_hostname] }}"}},
            {
                "ansible.builtin.include_role": role,
                "when": "vllm_plan.gangs | length > 0",
            },
        ],
    }
    succeeded, output = staged([]).run([play], HOSTS)
    return succeeded, output


def test_only_the_leader_refuses_members_that_differ(staged: Staged) -> None:
    succeeded, output = compare(staged, "abd")
    assert not succeeded
    assert "instance big: revision of a is abd, and of b abc; make both nodes the same" in output, output
    recap = output.partition("PLAY RECAP")[2]
    assert re.findall(r"(\w+) : ok=\d+ changed=0 unreachable=0 failed=0", recap) == ["a", "c"], recap
    assert re.findall(r"(\w+) : ok=\d+ changed=0 unreachable=0 failed=1", recap) == ["b"], recap


@pytest.mark.once
def test_members_with_equal_plans_pass(staged: Staged) -> None:
    succeeded, output = compare(staged, "abc")
    assert succeeded, output


SITE: dict[str, Any] = {
    "instances": [MAIN, BIG],
    "models": {"m": {"model": "/m"}},
    "gang_key": "0123456789abcdef",
    "engine_image": f"registry.example/vllm@sha256:{'0' * 64}",
    "model_store_path": "/mnt/models",
    "rdma_required": True,
    "rdma_nccl": {"NCCL_ALGO": "Ring"},
}
RAILS = {"rails": [{"key": "0000:20:00.0/1"}]}


def networks(staged: Staged, *options: str, **site: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What engine_plan gets on each host, and the calls of gang_facts."""
    role = {"name": "baremetal.inference.vllm", "tasks_from": "preflight"}
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {**SITE, **site},
        "tasks": [
            {"ansible.builtin.set_fact": {"rdma_planned": RAILS}, "when": "inventory_hostname == 'a'"},
            {"ansible.builtin.include_role": role},
        ],
    }
    seen = [({"module": "gang_facts", "on": host}, {"network": {"netdev": f"eth-{host}"}}) for host in "ab"]
    stage = staged(["gang_facts", "engine_plan"])
    succeeded, output = stage.run([play], HOSTS, *options, seen=seen)
    assert succeeded, output
    return {call["on"]: call["network"] for call in stage.calls(module="engine_plan")}, stage.calls(module="gang_facts")


def test_each_member_of_a_gang_gets_the_networks_of_all_members(staged: Staged) -> None:
    given, calls = networks(staged)
    both = {"a": {"netdev": "eth-a"}, "b": {"netdev": "eth-b"}}
    wanted = {"required": True, "rails_connected": None, "variables": {"NCCL_ALGO": "Ring"}}
    assert given["a"] == given["b"] == {"nodes": both, **wanted}
    assert given["c"] == {"nodes": {}, **wanted}
    found = {call["on"]: (call["address"], call["rails"]) for call in calls}
    assert found == {"a": ("10.0.0.1", RAILS), "b": ("192.0.2.2", {})}


@pytest.mark.once
def test_a_second_plan_of_a_run_keeps_the_networks(staged: Staged) -> None:
    roles = [{"name": "baremetal.inference.vllm", "tasks_from": part} for part in ("preflight", "plan")]
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": SITE,
        "tasks": [{"ansible.builtin.include_role": role} for role in roles],
    }
    seen = [({"module": "gang_facts"}, {"network": {"netdev": "eth0"}})]
    stage = staged(["gang_facts", "engine_plan"])
    succeeded, output = stage.run([play], HOSTS, seen=seen)
    assert succeeded, output
    assert sorted(call["on"] for call in stage.calls(module="gang_facts")) == ["a", "b"]
    given = [sorted(call["network"]["nodes"]) for call in stage.calls(module="engine_plan", on="a")]
    assert given == [["a", "b"], ["a", "b"]]


def wait(staged: Staged, *failures: dict[str, Any], **site: Any) -> tuple[bool, str, list[tuple[str, str]]]:
    """All hosts wait for their engines. Returns success, output, and which host waited for which instances."""
    role = {"name": "baremetal.inference.vllm", "tasks_from": "ready"}
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {**SITE, **site},
        "tasks": [{"ansible.builtin.include_role": role}],
    }
    stage = staged(["engine_service"])
    succeeded, output = stage.run([play], HOSTS, failures=failures)
    return succeeded, output, [(call["on"], ",".join(call["names"])) for call in stage.calls(module="engine_service")]


def test_followers_wait_after_their_leader(staged: Staged) -> None:
    succeeded, output, waited = wait(staged)
    assert succeeded, output
    assert sorted(waited[:3]) == [("a", "main"), ("b", "main,big"), ("c", "main")] and waited[3:] == [("a", "big")]


@pytest.mark.parametrize("part", ["change", pytest.param("ready", marks=pytest.mark.once)])
def test_a_restore_of_a_blank_machine_leaves_gangs_to_the_snapshot(staged: Staged, part: str) -> None:
    """A blank leader with the release of the inventory would move the other members to that release."""
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {**SITE, "restore_onto_blank": True},
        "tasks": [{"ansible.builtin.include_role": {"name": "baremetal.inference.vllm", "tasks_from": part}}],
    }
    parts = {f"roles/vllm/tasks/{name}.yml": "[]\n" for name in ("install", "stage")}
    stage = staged(["engine_service"], parts)
    succeeded, output = stage.run([play], HOSTS)
    assert succeeded, output
    assert sorted((call["on"], call["names"]) for call in stage.calls()) == [(host, ["main"]) for host in "abc"]


def test_no_follower_waits_for_a_leader_that_has_failed(staged: Staged) -> None:
    succeeded, output, waited = wait(staged, {"module": "engine_service", "on": "b"})
    assert not succeeded and ("a", "big") not in waited
    said = " ".join(output.split())
    assert "a: no leader serves big: b has failed in this run: see its error above." in said, output
    assert "run baremetal.inference.site -l b,a" in said, output


@pytest.mark.once
def test_a_run_without_a_member_lacks_the_network_of_that_member(staged: Staged) -> None:
    given, _calls = networks(staged, "--limit", "a")
    assert given == {"a": {**given["a"], "nodes": {"a": {"netdev": "eth-a"}}}}


def begin_restore(staged: Staged, limit: str, **answer: Any) -> tuple[bool, str, Any]:
    """Run the first play of a restore of blank machines, and the preflight of the role. `answer` changes that of b."""
    (first, *_others) = yaml.safe_load((ROOT / "playbooks/restore.yml").read_text(encoding="utf-8"))
    values = {**SITE, "snapshot": "latest"}
    included = {"ansible.builtin.include_role": {"name": "baremetal.inference.vllm", "tasks_from": "preflight"}}
    checks = {"hosts": "inference", "roles": ["site_variables"], "vars": values, "tasks": [included]}
    seen = [({"module": "gang_facts", "on": host}, {"network": {"netdev": f"eth-{host}"}}) for host in "ab"]
    seen.append(({"module": "gang_facts", "at": "b"}, {"network": {"netdev": "eth-b"}, **answer}))
    stage = staged(["gang_facts", "engine_plan"])
    first = {**first, "become": False, "vars": {**first["vars"], **values}}
    succeeded, output = stage.run([first, checks], HOSTS, "--limit", limit, seen=seen)
    return succeeded, output, stage


def test_a_restore_of_a_blank_machine_reads_the_networks_of_the_other_members(staged: Staged) -> None:
    """The blank machine has no record of these networks, and the run is for this machine alone."""
    succeeded, output, stage = begin_restore(staged, "a")
    assert succeeded, output
    (planned,) = stage.calls(module="engine_plan")
    assert planned["network"]["nodes"] == {"a": {"netdev": "eth-a"}, "b": {"netdev": "eth-b"}}
    asked = [(call.get("at", "a"), call["address"]) for call in stage.calls(module="gang_facts")]
    assert asked == [("b", "192.0.2.2"), ("a", "10.0.0.1")]


@pytest.mark.once
def test_a_run_that_restores_several_members_does_not_read_blank_members_first(staged: Staged) -> None:
    succeeded, output, stage = begin_restore(staged, "a,b", gone=True)
    assert succeeded, output
    assert [call for call in stage.calls(module="gang_facts") if "at" in call] == []
    assert [sorted(call["network"]["nodes"]) for call in stage.calls(module="engine_plan")] == [["a", "b"]] * 2


def test_a_restore_without_the_network_of_another_member_is_an_error_with_the_next_step(staged: Staged) -> None:
    succeeded, output, stage = begin_restore(staged, "a", gone=True)
    assert not succeeded and not stage.calls(module="engine_plan"), output
    assert "a: nothing was changed. The run needs the networks of all members of a gang, and did not" in output, output
    assert re.search("get these: b: .*this machine is gone Start b, or correct the cause", output), output
    assert "restore all lost machines in one run: -l a,b" in output, output
    # The task that reports the problem fails: the host counts as failed, not as unreachable.
    assert "failed=1" in output and "unreachable=0" in output, output
