# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""power_cycle.yml, with a Redfish service that kills and starts the node's container. These tests run last."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from node import Node, playbook, wait_for
from redfish import Machine, serve

NAME = "baremetal.inference.power_cycle"
PASSWORD = "bmc-s3cret-77"


class Container(Machine):
    """A node whose power is the state of its container."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def reset(self, kind: str) -> None:
        super().reset(kind)
        command = {"ForceOff": ["kill"], "On": ["start"], "ForceRestart": ["restart", "--time=0"]}[kind]
        subprocess.run(["docker", *command, self.name], check=True, capture_output=True)


def test_a_mistake_of_the_operator_does_not_cut_the_power(deb12: Node, deb13: Node, tmp_path: Path) -> None:
    machine = Container(deb13.container)
    with serve(machine, PASSWORD, tmp_path) as (address, authority):
        bmc: dict[str, Any] = {
            "bmc_address": address,
            "bmc_user": "admin",
            "bmc_password": PASSWORD,
            "bmc_ca": str(authority),
        }
        cases: list[tuple[str, dict[str, Any], str]] = [
            (f"{deb12.name},{deb13.name}", {"confirm": deb13.name}, "Name one node twice"),
            (deb13.name, {}, "Name one node twice"),
            (deb13.name, {"confirm": deb12.name}, "Name one node twice"),
            (deb13.name, {"confirm": deb13.name, "bmc_password": "wrong"}, "refuses the user or the password"),
            (deb13.name, {"confirm": deb13.name}, "answers over SSH"),
            (deb13.name, {"confirm": deb13.name, "ansible_ssh_private_key_file": "/dev/null"}, "Permission denied"),
            (deb13.name, {"confirm": deb13.name, "ansible_host": "no.such.invalid"}, "not show that the node hangs"),
        ]
        for limit, more, words in cases:
            output = playbook(limit, name=NAME, check=False, **{**bmc, **more})
            assert words in " ".join(output.split())
            assert PASSWORD not in output
    assert machine.orders == []


def hang(node: Node, machine: Container) -> None:
    """Until its next boot, the node accepts a login and then hangs, as with a system disk that does not answer."""
    hangs = 'ForceCommand [ ! -e /run/hangs ] || sleep 1000; sh -c "$SSH_ORIGINAL_COMMAND"'
    node.run(f"echo {shlex.quote(hangs)} > /etc/ssh/sshd_config.d/01-test.conf; touch /run/hangs; systemctl reload ssh")


def power_off(node: Node, machine: Container) -> None:
    """Power a node off, as an operator does after the loss of a GPU."""
    node.run("systemctl poweroff", check=False)
    subprocess.run(["docker", "wait", node.container], check=True, capture_output=True, timeout=180)
    machine.state = "Off"


@pytest.mark.full
@pytest.mark.parametrize(
    ("stop", "orders"), [(power_off, ["On"]), (hang, ["ForceOff", "On"])], ids=["powered off", "hangs"]
)
def test_a_node_that_is_off_or_hangs_comes_back(
    deb13: Node, tmp_path: Path, stop: Callable[[Node, Container], None], orders: list[str]
) -> None:
    machine = Container(deb13.container)
    stop(deb13, machine)
    with serve(machine, PASSWORD, tmp_path) as (address, authority):
        output = playbook(
            deb13.name,
            "-vvv",
            name=NAME,
            confirm=deb13.name,
            bmc_address=address,
            bmc_user="admin",
            bmc_password=PASSWORD,
            bmc_ca=str(authority),
            environment={"ANSIBLE_LOG_PATH": str(tmp_path / "log")},
        )
    assert machine.orders == orders
    assert PASSWORD not in output + (tmp_path / "log").read_text()
    wait_for("the node is up", lambda: deb13.run("systemctl is-system-running", check=False) == "running")
