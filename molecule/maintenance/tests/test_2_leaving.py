# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of an instance under load, then of a whole node: of the new files, only those in STAYS stay."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fleet import Fleet, unharmed
from node import EPHEMERAL, Node, changes, playbook

DECOMMISSION = "baremetal.inference.decommission"

STAYS = re.compile(
    r"""
    # Files of packages, and files that dpkg, apt and their scripts create.
    (?:/usr/(?!local/)|/var/lib/(?!inference|prometheus)|/var/cache/(?!inference)|/var/log/|/var/backups/|/boot/|/home|/opt|/srv)
    |/etc/(?:alternatives|ssl|ld\.so|cron|default|init\.d|rc\d?\.d|logrotate\.d|apparmor|bash_completion|ca-certificates|dbus-1
            |dpkg|emacs|gnutls|kernel|ldap|libnl|pam\.d|perl|profile\.d|python|rsyslog|sgml|sysctl\.d|systemd/(?!system/(?:inference|vllm))
            |ucf|udev|update-motd|X11|xdg|xml|vim|containerd|cni|logcheck|needrestart|pki|environment|rmt|gss|ethertypes)
    # Private directories of systemd's services, since the boot.
    |/var/tmp/systemd-private-
    # Users and groups of packages.
    |/etc/(?:passwd|group|shadow|gshadow|subuid|subgid)-?$
    # The baseline of the role common, as docs/maintenance.md lists it.
    |/etc/(?:ssh|apt|nftables|security|modules-load\.d|modprobe\.d|tmpfiles\.d|chrony|hosts|motd|issue|netconfig|mke2fs|nfs|unattended)
    # Docker, which remove_packages=true removes, and the record of its configuration.
    |/etc/docker|/root/\.docker|/var/lib/inference(?:/docker-daemon\.json)?$
    # Files of Ansible, and caches and keys in the home directory of root.
    |/root/\.(?:ansible|cache|gnupg)
    """,
    re.VERBOSE,
)


ENGINES = "meta skuid"
"""Words of the firewall's rules about connections that engines open: each rule has the number of the engines' user."""


def remove(*options: str, check: bool = True, **extra: Any) -> str:
    """Run the playbook on all nodes and gateways. Returns its output."""
    return playbook("all", *options, check=check, name=DECOMMISSION, **extra)


def listing(node: Node) -> set[str]:
    """Every path on the node."""
    return set(node.run("find / -xdev").splitlines())


def rules(node: Node) -> str:
    """The firewall of the node."""
    return node.run("nft list table inet inference")


def before(node: Node) -> set[str]:
    return {line.split(" ", 1)[1] for line in (EPHEMERAL / f"{node.name}.files").read_text().splitlines()}


def test_an_unclear_removal_or_one_that_clients_would_notice_is_refused(fleet: Fleet) -> None:
    first, second = fleet.nodes
    for wrong, words in (
        ({"instance": "main"}, "has no other server for it"),
        ({"instance": "main", "model": "tiny-a"}, "found instance, model"),
        ({"node": second.name}, 'confirm "'),
        ({"node": first.name, "confirm": first.name}, "remove it from the group gateway first"),
        ({"instance": "main", "host": "nobody"}, 'found "nobody"'),
    ):
        assert words in " ".join(remove(check=False, **wrong).split()), wrong
    assert "-l excludes" in playbook(second.name, name=DECOMMISSION, check=False, instance="main")
    assert fleet.answers() == ["I am tiny-a."] * 2


def test_orphans_are_listed_and_not_removed(fleet: Fleet) -> None:
    declared = [{"name": "other", "model": "tiny-a", "port": 5006, "accelerator": "cpu"}]
    output = remove(instances=declared)
    assert output.count("main is on the node, and the inventory does not declare it") == 2
    assert changes(output) == 0


def test_an_instance_is_removed_and_no_client_notices(fleet: Fleet) -> None:
    fleet.wait_up()
    node = fleet.nodes[1]
    output = remove("--check", instance="main", host=node.name)
    assert f"{node.name}: main (tiny-a) is removed; the inventory still declares it" in output
    assert changes(output) > 0 and fleet.answers() == ["I am tiny-a."] * 2
    assert ENGINES in rules(node)
    said: list[str] = []
    # The playbook does not apply a changed port of the gateway: clients still use the old port.
    unharmed(fleet.load().during(lambda: said.append(remove(instance="main", host=node.name, gateway_port=8099))))
    assert "without these changes of the inventory: gateway_port" in " ".join(said[0].split())
    assert fleet.up() == [fleet.nodes[0].name]
    assert not [path for path in listing(node) if "vllm@main" in path or "/main.json" in path]
    assert node.run("docker ps --all --quiet") == "" and node.run("docker images --quiet") == ""
    assert ":5005" not in node.run("ss -ltn") and "5005" not in rules(node)
    # The inventory still declares an engine for this node.
    assert "5004" in rules(node) and ENGINES in rules(node)
    assert changes(remove(instance="main", host=node.name)) == 0


def test_a_node_is_removed_and_nothing_is_left(fleet: Fleet) -> None:
    node = fleet.nodes[1]
    wanted: dict[str, Any] = {"node": node.name, "confirm": node.name, "remove_models": True}
    output = remove("--check", **wanted)
    assert changes(output) > 0 and "inference-agent" in node.run("systemctl list-units --all")
    unharmed(fleet.load().during(lambda: remove(**wanted)))
    owned = set(node.run("cat /var/lib/dpkg/info/*.list").splitlines())
    left = sorted(path for path in listing(node) - before(node) - owned if not STAYS.match(path))
    assert left == []
    assert not [line for line in node.run("getent passwd").splitlines() if line.startswith("inference:")]
    units = node.run("systemctl list-units --all --plain --no-legend; systemctl list-timers --all --no-legend")
    assert not [line for line in units.splitlines() if "inference" in line or "vllm" in line]
    assert ":5004" not in node.run("ss -ltn")
    # No rule may keep the number of the engines' user: a new account may get this number.
    assert not re.search(r"\b500\d\b", rules(node)) and ENGINES not in rules(node)
    assert changes(remove(**wanted)) == 0
    assert sorted(path for path in listing(node) - before(node) - owned if not STAYS.match(path)) == []


def test_the_other_node_still_serves(fleet: Fleet) -> None:
    """The engine of the other node still cannot connect to the SSH server of its own node."""
    first = fleet.nodes[0]
    assert first.ask() == "I am tiny-a." and fleet.up() == [first.name]
    connect = "import socket; socket.create_connection(('127.0.0.1', 22))"
    assert "ConnectionRefusedError" in first.run(f'docker exec vllm-main python3 -c "{connect}" 2>&1', check=False)
    assert ":22 " in first.run("ss -ltn")


def test_the_ports_of_a_gateway_stay_open_after_its_instance_is_removed(fleet: Fleet) -> None:
    """HAProxy and the firewall still have the old port of the gateway."""
    first, second = fleet.nodes
    ask = f"curl -s -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {fleet.key}' http://{first.address}:8000/v1/models"
    pending: dict[str, Any] = {"gateway_port": 8099, "gateway_clients": ["192.0.2.1"]}
    remove(instance="main", host=first.name, allow_downtime=True, **pending)
    assert "5005" not in rules(first) and second.run(ask) == "200"
    remove(monitoring=first.name, confirm=first.name, **pending)
    assert "8000" in rules(first) and "8099" not in rules(first) and second.run(ask) == "200"


@pytest.mark.full
def test_docker_is_removed_on_request(fleet: Fleet) -> None:
    node = fleet.nodes[1]
    wanted: dict[str, Any] = {"node": node.name, "confirm": node.name, "remove_packages": True}
    assert changes(remove(**wanted)) > 0
    packages = node.run("dpkg-query --show --showformat '${db:Status-Status} ${Package}\\n'")
    assert not re.search(r"^installed (?:docker|containerd|restic)", packages, re.MULTILINE)
    # /var/lib/docker is a volume of the node container: the directory stays, without content.
    assert not node.run("ls -d /etc/docker 2>/dev/null; find /var/lib/docker -mindepth 1", check=False)
    assert changes(remove(**wanted)) == 0
