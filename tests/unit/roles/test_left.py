# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that left the group `gateway` or `monitoring` are reported. decommission.yml removes what they still have.

The tests of the modules cover what the modules remove. Here, stand-ins answer what the modules would find.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]

# One host of each group. Each may have been in another group before.
HOSTS = """
[inference]
two
[gateway]
one
[monitoring]
three
[others]
four
"""

NO_FILES: dict[str, Any] = {"services": [], "files": [], "floating_address": ""}
NOTHING: dict[str, Any] = {"stopped": [], "removed": [], "kept": [], "foreign": [], "floating_address": ""}


@dataclass(frozen=True)
class Kind:
    """A group that a host can leave, and what the host then still has."""

    group: str
    member: str
    found: dict[str, Any]
    foreign_file: str

    @property
    def module(self) -> str:
        return {"gateway": "gateway", "monitoring": "monitoring_server"}[self.group]

    def answers(self, found: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        known = {**NOTHING, **found}
        there = {"services": known["stopped"], "files": known["removed"], "floating_address": known["floating_address"]}
        left = {"gateway": NO_FILES, "monitoring": NO_FILES, "logs": NO_FILES, "left": [], self.group: there}
        if known["removed"]:
            left["left"] = [self.group]
        return [({"module": self.module, "state": "absent"}, known), ({"module": "node_facts"}, left)]


GATEWAY = Kind("gateway", "one", {"stopped": ["haproxy.service"], "removed": ["x"]}, "/etc/haproxy/haproxy.cfg")
FLOATING = {"stopped": ["keepalived.service", "haproxy.service"], "floating_address": "192.0.2.10/24"}
MONITORING = Kind(
    "monitoring",
    "three",
    {"stopped": ["prometheus.service"], "removed": ["x"], "kept": ["/srv/samples"]},
    "/etc/prometheus/prometheus.yml",
)

each = pytest.mark.parametrize(
    # Both kinds run the same tasks, with other values.
    "kind",
    [GATEWAY, pytest.param(MONITORING, marks=pytest.mark.once)],
    ids=lambda kind: kind.group,
)


def decommission() -> list[dict[str, Any]]:
    """The plays of decommission.yml."""
    plays: list[dict[str, Any]] = yaml.safe_load((ROOT / "playbooks/decommission.yml").read_text(encoding="utf-8"))
    return plays


class Site:
    """The stage with these hosts."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(self, plays: Sequence[dict[str, Any]], **more: Any) -> tuple[bool, str]:
        """Whether the plays succeeded, and what was printed. `extra`: more variables."""
        variables = {
            "ansible_become": False,
            "inference_address": "192.0.2.1",
            "ansible_host": "192.0.2.2",
            "monitoring_dashboards_path": str(self.stage.home / "dashboards"),
            # The run finds no dashboards to remove: a process for each would take most of the time.
            "__monitoring_files": str(self.stage.home),
            "instances": [],
            **more.pop("extra", {}),
        }
        more["seen"] = [
            ({"module": "firewall"}, {"installed": True, "differs": []}),
            *more.get("seen", ()),
        ]
        hosts = more.pop("hosts", HOSTS)
        found: tuple[bool, str] = self.stage.run(plays, hosts, "--extra-vars", json.dumps(variables), **more)
        return found

    def look(self, kind: Kind, found: dict[str, Any]) -> tuple[bool, str]:
        """What site.yml does for hosts that are not in the group."""
        include = {"name": f"baremetal.inference.{kind.group}", "tasks_from": "left"}
        play = {"name": "Look", "hosts": "two", "tasks": [{"name": "Look", "ansible.builtin.include_role": include}]}
        return self.run([play], seen=kind.answers(found))

    def remove(self, kind: Kind, found: dict[str, Any], **extra: Any) -> tuple[bool, str]:
        return self.run(decommission(), extra=extra, seen=kind.answers(found))

    def calls(self, *modules: str) -> list[tuple[str, str, bool]]:
        """Which of these modules was called where, and whether in check mode."""
        found = [(call["module"], call["on"], call["check_mode"]) for call in self.stage.calls()]
        return [call for call in found if call[0] in modules]


@pytest.fixture
def site(staged: Callable[[Sequence[str]], Any]) -> Site:
    modules = [
        "apt_packages",
        "firewall",
        "gateway",
        "gateway_certificate",
        "node_facts",
        "monitoring_exporters",
        "monitoring_server",
    ]
    return Site(staged(modules))


@pytest.mark.once
def test_the_playbook_monitoring_looks_for_leftovers_on_all_other_hosts() -> None:
    text = (ROOT / "playbooks/monitoring.yml").read_text(encoding="utf-8")
    assert "tasks_from: left\n      when: not monitoring_serves\n" in text


def site_plays() -> list[dict[str, Any]]:
    """From site.yml: the task that reads what earlier runs left, and the play that reports leftovers."""
    plays: list[dict[str, Any]] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (asks,) = [play for play in plays if any("node_facts" in str(task) for task in play.get("tasks", ()))]
    tasks = [task for task in asks["tasks"] if "baremetal.inference.node_facts" in task]
    (reports,) = [play for play in plays if "site_last" in str(play.get("tasks", ""))]
    return [{**asks, "tasks": tasks}, reports]


def due(*roles: str) -> dict[str, bool]:
    """What the checks of the other roles have found."""
    names = ("common", "nvidia_driver", "docker", "model_store", "vllm", "recovery", "gateway", "monitoring", "backup")
    return {f"{name}_due": name in roles for name in names}


def test_the_site_reads_each_machine_once_and_reports_only_leftovers(site: Site) -> None:
    seen = [*GATEWAY.answers(NOTHING), *MONITORING.answers(NOTHING)]
    done, said = site.run(site_plays(), seen=seen, extra={**due(), "gateway_verify_seconds": 0})
    assert done and "left the group" not in said and "ignored=1" not in said, said
    # Each host is read once. On the monitoring host, one more module sets up Prometheus.
    calls = [(call["module"], call["on"]) for call in site.stage.calls()]
    asked = [("node_facts", host) for host in ("one", "three", "two")]
    assert sorted(calls) == [("monitoring_server", "three"), *asked]
    assert "two : ok=1 changed=0 unreachable=0 failed=0 skipped=2 " in said


def test_the_gateways_are_read_with_the_tags_of_their_role_too(site: Site) -> None:
    """What gateways serve, and which of them has the site's CA, decides about a certificate."""
    done, said = site.stage.run(site_plays()[:1], HOSTS, "--tags", "gateway_certificate", "-e", "ansible_become=false")
    assert done, said
    assert sorted(call["on"] for call in site.stage.calls(module="node_facts")) == ["one", "three", "two"]


@each
def test_the_site_reports_only_hosts_that_have_left_their_group(site: Site, kind: Kind) -> None:
    found = {**kind.found, **(FLOATING if kind is GATEWAY else {})}
    done, said = site.run(site_plays(), seen=kind.answers(found), extra={**due(), "gateway_verify_seconds": 0})
    assert done and ("TWO HOSTS" in said) is (kind is GATEWAY), said
    named = {host for host in ("one", "two", "three") if f"-e {kind.group}={host} -e confirm={host}" in said}
    assert named == {"one", "two", "three"} - {kind.member}


@each
def test_services_that_still_run_are_reported_with_the_command_that_removes_them(site: Site, kind: Kind) -> None:
    done, said = site.look(kind, {**kind.found, "changed": True})
    assert done and [call["on"] for call in site.stage.calls()] == ["two"] and "changed=0" in said
    assert site.stage.calls(module="node_facts", gather_subset=["left"])
    assert f"but still runs {kind.found['stopped'][0]}, with the last" in said and "TWO HOSTS" not in said
    assert f"baremetal.inference.decommission -e {kind.group}=two -e confirm=two" in said
    left = f"left the group {kind.group}"
    assert left in said and left not in site.look(kind, NOTHING)[1]


def test_a_floating_address_that_two_hosts_may_hold_is_an_error_that_stops_no_host(site: Site) -> None:
    done, said = site.look(GATEWAY, {**GATEWAY.found, **FLOATING})
    assert done and "failed=0" in said and "ignored=1" in said, said
    assert "TWO HOSTS MAY HOLD 192.0.2.10/24: keepalived still runs on two" in said


@pytest.mark.parametrize(
    "extra",
    [
        {"gateway": "two"},
        *(
            pytest.param(extra, marks=pytest.mark.once)
            for extra in (
                {"gateway": "one", "confirm": "one"},
                {"monitoring": "three", "confirm": "three"},
                {"gateway": "two", "monitoring": "two", "confirm": "two"},
            )
        ),
        *(
            pytest.param(extra, marks=pytest.mark.full)
            for extra in (
                {"monitoring": "two", "confirm": "four"},
                {"gateway": "nobody", "confirm": "nobody"},
                {"monitoring": "gateway", "confirm": "gateway"},
                {"gateway": "two", "confirm": "two", "instance": "main"},
            )
        ),
    ],
    ids=lambda extra: ",".join(f"{key}={value}" for key, value in extra.items()),
)
def test_an_unclear_removal_is_refused(site: Site, extra: dict[str, str]) -> None:
    done, said = site.remove(GATEWAY, GATEWAY.found, **extra)
    assert not done and site.stage.calls() == [] and "Nothing was changed" in said, said


@pytest.mark.once
def test_a_node_and_a_host_exclude_each_other(site: Site) -> None:
    done, said = site.remove(GATEWAY, NOTHING, node="two", confirm="two", host="two")
    assert not done and site.stage.calls() == [] and "-e node=two and -e host=two exclude each other" in said, said
    done, said = site.remove(GATEWAY, NOTHING, node="nobody", confirm="nobody")
    assert not done and "exclude each other" not in said, said


def test_monitoring_is_removed_only_from_the_named_host(site: Site) -> None:
    dashboards = site.stage.home / "dashboards"
    dashboards.mkdir()
    for name in ("inference-node.json", "own.json"):
        (dashboards / name).write_text("{}")
    files = {"__monitoring_files": str(ROOT / "roles/monitoring/files")}
    done, said = site.remove(MONITORING, MONITORING.found, monitoring="two", confirm="two", **files)
    assert done and {call["on"] for call in site.stage.calls()} == {"two"}, said
    steps = site.calls("monitoring_server", "firewall")
    assert steps == [("monitoring_server", "two", False), ("firewall", "two", True)]
    assert [path.name for path in dashboards.iterdir()] == ["own.json"]


def test_the_gateway_is_removed_only_from_the_named_host(site: Site) -> None:
    done, said = site.remove(GATEWAY, {**GATEWAY.found, **FLOATING}, gateway="two", confirm="two")
    assert done and {call["on"] for call in site.stage.calls()} == {"two"}, said
    # The command that renews the certificate goes first: a removal that is cut off leaves the gateway's configuration.
    steps = site.calls("gateway_certificate", "gateway", "apt_packages", "firewall")
    assert steps == [
        *((module, "two", False) for module in ("gateway_certificate", "gateway", "apt_packages")),
        ("firewall", "two", True),
    ]
    assert site.stage.calls(module="apt_packages", pins=[{"name": "gateway", "packages": []}])
    # The firewall allows what a node needs, and nothing of a gateway.
    (firewall,) = site.stage.calls(module="firewall")
    assert {"gateway", "gateway metrics", "floating address"}.isdisjoint(rule["name"] for rule in firewall["allow"])
    assert "packages and certificates stay" in said and "certbot delete --cert-name inference-gateway" in said


KEEPALIVED = """\
# Managed by Ansible, role baremetal.inference.gateway: changes made here are lost.
vrrp_instance gateway {
    unicast_peer {
        192.0.2.8
        192.0.2.9
    }
    virtual_ipaddress {
        192.0.2.10/24
    }
}
"""


GATEWAYS: dict[str, tuple[dict[str, Any] | None, str, dict[str, Any]]] = {
    "fresh": (None, "", {"gateway": ("8099", ["192.0.2.7"])}),
    "pending": ({"port": 8000, "clients": []}, "", {"gateway": ("8000", None)}),
    "floating": (
        {"port": 8000, "clients": ["192.0.2.5"]},
        KEEPALIVED,
        {"gateway": ("8000", ["192.0.2.5"]), "floating address": ("None", ["192.0.2.8", "192.0.2.9"])},
    ),
    "foreign": ({}, KEEPALIVED.replace("Ansible", "hand"), {"gateway": ("8099", ["192.0.2.7"])}),
}
"""By host: its recorded settings, its configuration of keepalived, and the firewall rules that stay."""


@pytest.mark.once
def test_the_removal_of_monitoring_keeps_the_ports_of_a_gateway_open(site: Site) -> None:
    """The host was a monitoring host, too. Only site.yml applies new values of the inventory to the gateway."""
    home = site.stage.home
    for name, (kept, keepalived, _opened) in GATEWAYS.items():
        if kept is not None:
            (home / f"{name}.json").write_text(json.dumps({"settings": kept}))
        if keepalived:
            (home / f"{name}.conf").write_text(keepalived)
    said = {"gateway_port": 8099, "gateway_clients": ["192.0.2.7"], "gateway_floating_peers": ["192.0.2.3"]}
    # A mistake in a variable that this run does not use.
    said |= {"gateway_keys": [{"key": "nameless"}]}
    own = {
        "__gateway_state": f"{home}/{{{{ inventory_hostname }}}}.json",
        "__gateway_floating_config": f"{home}/{{{{ inventory_hostname }}}}.conf",
    }
    # The play runs on all of these hosts. By its own variables, each host is the only one to remove.
    plays = [
        {**play, "hosts": "gateway"} for play in decommission() if play["name"].startswith("Remove the gateway or")
    ]
    leaver = dict.fromkeys(["monitoring", "confirm"], "{{ inventory_hostname }}")
    hosts = HOSTS.replace("one", "\n".join(GATEWAYS))
    done, output = site.run(
        plays, hosts=hosts, extra={**said, **own, **leaver}, seen=MONITORING.answers(MONITORING.found)
    )
    assert done, output
    for name, (kept, _keepalived, opened) in GATEWAYS.items():
        (firewall,) = site.stage.calls(module="firewall", on=name)
        rules = {rule["name"]: (str(rule.get("port")), rule.get("sources")) for rule in firewall["allow"]}
        found = {kind: rules[kind] for kind in ("gateway", "floating address") if kind in rules}
        assert (name, found) == (name, opened)
        waits = (
            f"{name}: the gateway runs without these changes of the inventory: gateway_clients, gateway_port." in output
        )
        assert (name, waits) == (name, "port" in (kept or {})), output


def test_an_unreadable_state_of_a_gateway_leaves_its_firewall_unchanged(site: Site) -> None:
    """A state file that cannot be read does not mean a new gateway."""
    (site.stage.home / "gateway.json").mkdir()
    state = str(site.stage.home / "gateway.json")
    done, said = site.remove(MONITORING, NOTHING, monitoring="one", confirm="one", __gateway_state=state)
    assert not done and site.calls("firewall") == [], said


@pytest.mark.once
def test_the_firewall_of_a_host_outside_of_all_groups_stays(site: Site) -> None:
    done, said = site.remove(GATEWAY, GATEWAY.found, gateway="four", confirm="four")
    assert done and site.calls("gateway", "firewall") == [("gateway", "four", False)], said


@each
def test_files_of_other_tools_stay_and_are_reported(site: Site, kind: Kind) -> None:
    done, said = site.remove(kind, {"foreign": [kind.foreign_file]}, confirm="two", **{kind.group: "two"})
    assert done and f"this collection did not write {kind.foreign_file}." in said and site.calls("apt_packages") == []


def test_a_removed_node_releases_the_floating_address_before_its_firewall_changes(site: Site) -> None:
    """Run only the play that does both: the other plays would remove what this machine has."""
    plays = [play for play in decommission() if play["name"] == "Remove the instances from the nodes"]
    extra = {"node": "two", "confirm": "two", "update_removed": []}
    done, said = site.run(plays, extra=extra, seen=GATEWAY.answers({**GATEWAY.found, **FLOATING}))
    assert done, said
    assert site.calls("gateway", "firewall") == [("gateway", "two", False), ("firewall", "two", True)]
