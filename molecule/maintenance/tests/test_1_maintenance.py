# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates, cleaning and reboots under load: no client notices, and an update that breaks a node stops the run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import Boots
from fleet import Fleet, unharmed
from node import changes, playbook
from repository import Package, Repository

MAINTENANCE = "baremetal.inference.maintenance"

# apt gives this name to a repository that is a directory and has no label.
SECURITY = ["localhost"]

BREAKS = "systemctl stop vllm@main.service"


def maintain(fleet: Fleet, *options: str, check: bool = True, **extra: Any) -> str:
    """Run the maintenance with updates from the test's repository only. Returns the output."""
    given = {"maintenance_security_labels": SECURITY, "maintenance_lists_seconds": 0, **extra}
    return playbook(fleet.limit, *options, check=check, name=MAINTENANCE, **given)


def publish(fleet: Fleet, version: str, postinst: str = "") -> None:
    """Publish a new version of the package on all nodes."""
    scripts = {"postinst": postinst} if postinst else {}
    files = {"/usr/share/harmless/version": f"{version}\n"}
    for node in fleet.nodes:
        Repository(node, "Harmless").publish([Package("harmless", version, files=files, scripts=scripts)])


def versions(fleet: Fleet) -> list[str]:
    return [node.run("dpkg-query --show --showformat='${Version}' harmless") for node in fleet.nodes]


@pytest.fixture(scope="module")
def packaged(fleet: Fleet) -> Fleet:
    """Nodes with version 1 of a package, and version 2 in the repository."""
    publish(fleet, "1")
    for node in fleet.nodes:
        node.run("apt-get -qq install --yes harmless")
    publish(fleet, "2")
    return fleet


def test_check_mode_shows_the_plan_and_changes_nothing(packaged: Fleet) -> None:
    pids = [node.engine_pid() for node in packaged.nodes]
    output = maintain(packaged, "--check")
    first, second = packaged.nodes
    assert f"batch 1: {first.name}: update harmless 1 -> 2, drained" in output, output
    assert f"batch 2: {second.name}: update harmless 1 -> 2, drained" in output
    assert '"would be updated"' in output and '"reboot due": "no"' in output
    assert changes(output) == 0
    assert versions(packaged) == ["1", "1"]
    assert [node.engine_pid() for node in packaged.nodes] == pids


def test_a_part_is_chosen_by_its_tag(packaged: Fleet) -> None:
    output = maintain(packaged, "--tags", "disks,cleanup")
    assert "GiB free" in output and "update harmless" not in output
    assert versions(packaged) == ["1", "1"]
    assert "found none" in " ".join(maintain(packaged, "--tags", "bogus", check=False).split())


def test_packages_are_updated_on_both_nodes_without_a_failed_request(packaged: Fleet) -> None:
    packaged.wait_up()
    node = packaged.nodes[1]
    image = node.run("docker inspect --format '{{.Config.Image}}' vllm-main")
    node.run(f"docker create --name vllm-gone {image} true")
    pids = [each.engine_pid() for each in packaged.nodes]
    said: list[str] = []
    unharmed(packaged.load().during(lambda: said.append(maintain(packaged)), seconds_after=3))
    assert versions(packaged) == ["2", "2"]
    # The run does not restart engines.
    assert [each.engine_pid() for each in packaged.nodes] == pids
    assert not any("maintenance" in drains for drains in packaged.drains())
    assert packaged.up() == sorted(each.name for each in packaged.nodes)
    assert said[0].count("harmless 1 -> 2") >= 4 and "container vllm-gone" in said[0]
    assert "vllm-gone" not in node.run("docker ps --all")


def test_a_second_run_changes_no_node(packaged: Fleet) -> None:
    output = maintain(packaged)
    assert changes(output) == 0, output
    assert all(f"nothing is due on {node.name}" in output for node in packaged.nodes)


def test_an_update_that_breaks_a_node_stops_the_run(packaged: Fleet) -> None:
    packaged.wait_up()
    publish(packaged, "3", postinst=BREAKS)
    first, second = packaged.nodes
    pid = second.engine_pid()
    said: list[str] = []
    unharmed(packaged.load().during(lambda: said.append(maintain(packaged, check=False))))
    words = " ".join(said[0].split())
    assert f"baremetal.inference.maintenance stopped: it failed on {first.name}" in words, said[0][-3000:]
    assert f"{first.name} stays drained" in words and f"{second.name} was not touched" in words
    assert versions(packaged) == ["3", "2"] and second.engine_pid() == pid
    drains = packaged.drains()
    assert f"maintenance of {first.name} failed" in drains[0] and "maintenance" not in drains[1]
    assert packaged.up() == [second.name]


def test_the_next_run_updates_all_nodes_when_the_cause_is_gone(packaged: Fleet) -> None:
    publish(packaged, "4")
    unharmed(packaged.load().during(lambda: maintain(packaged)))
    assert versions(packaged) == ["4", "4"]
    assert not any("maintenance" in drains for drains in packaged.drains())
    packaged.wait_up()
    assert packaged.answers() == ["I am tiny-a."] * 2


def test_a_certificate_that_ends_soon_fails_the_run(packaged: Fleet) -> None:
    node = packaged.nodes[1]
    options = "-x509 -newkey rsa:2048 -nodes -subj /CN=test -days 3"
    node.run(f"openssl req {options} -keyout /root/key.pem -out /root/cert.pem 2>/dev/null")
    output = maintain(packaged.only(node), "--tags", "certificates", check=False, certificates=["/root/cert.pem"])
    assert "/root/cert.pem has 2 days left" in " ".join(output.split())
    output = maintain(
        packaged.only(node),
        "--tags",
        "certificates",
        certificates=["/root/cert.pem"],
        maintenance_certificate_fail_days=1,
    )
    assert "/root/cert.pem has 2 days left" in output
    node.run("rm /root/cert.pem /root/key.pem")


DKMS = "nvidia/580.105.08, 6.1.0-50-amd64, x86_64: installed"


def test_a_kernel_without_the_driver_is_refused_before_the_reboot(packaged: Fleet) -> None:
    """A fake dkms lists a module for one of two kernels. The scenario driver builds real modules."""
    node = packaged.nodes[1]
    node.run(f"printf '#!/bin/sh\\necho {DKMS}\\n' >/usr/local/sbin/dkms; chmod 755 /usr/local/sbin/dkms")
    node.run("mkdir -p /boot; touch /run/reboot-required /boot/vmlinuz-6.1.0-50-amd64 /boot/vmlinuz-6.1.0-51-amd64")
    pid = node.engine_pid()
    try:
        words = " ".join(maintain(packaged, check=False, reboot_allowed=True).split())
        assert "Do not reboot this node" in words and "kernel 6.1.0-51-amd64" in words
        assert node.engine_pid() == pid and not any("maintenance" in drains for drains in packaged.drains())
    finally:
        node.run("rm -f /usr/local/sbin/dkms /run/reboot-required /boot/vmlinuz-6.1.0-5*-amd64")


@pytest.mark.full
def test_a_node_reboots_only_where_that_is_due_and_allowed(packaged: Fleet) -> None:
    """Here a reboot restarts the node's container. The scenario vm reboots a machine."""
    packaged.wait_up()
    gateway, node = packaged.nodes
    node.run("touch /run/reboot-required; echo libc6 >/run/reboot-required.pkgs")
    address = node.address
    output = maintain(packaged)
    assert changes(output) == 0 and "libc6" in output
    with Boots(node) as boots:
        said: list[str] = []
        unharmed(packaged.load().during(lambda: said.append(maintain(packaged, reboot_allowed=True))))
    assert boots.count == 1, said
    assert node.address == address
    assert '"rebooted": "yes"' in said[0] and f"nothing is due on {gateway.name}" in said[0]
    packaged.wait_up()
    assert node.ask() == "I am tiny-a."
    assert not any("maintenance" in drains for drains in packaged.drains())


@pytest.mark.full
def test_a_reboot_of_a_node_that_is_also_a_gateway_is_refused(packaged: Fleet) -> None:
    gateway, node = packaged.nodes
    gateway.run("touch /run/reboot-required")
    words = " ".join(maintain(packaged, check=False, reboot_allowed=True).split())
    assert f"{gateway.name} is also a gateway" in words
    gateway.run("rm /run/reboot-required")
    assert json.loads(node.run("inferctl releases --json"))["lock"] is None


def test_the_package_and_its_repository_are_removed(packaged: Fleet) -> None:
    for node in packaged.nodes:
        node.run("apt-get -qq purge --yes harmless")
        Repository(node, "Harmless").remove()
