# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subnet manager of InfiniBand: missing, present, and ended.

opensm and sminfo are real. ibsim simulates two nodes at a switch: a program that ibsim-run starts finds a device. The
files of this device are in the directory sys-PID, and are removed when the program ends. So the test copies them, and
adds the file `link_layer`, which ibsim does not make.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from node import Node, wait_for

pytestmark = pytest.mark.full

HOME = "/root/fabric"
NET = """
Switch 8 "S-1"
[1] "H-1"[1]
[2] "H-2"[1]

Hca 1 "H-1"
[1] "S-1"[1]

Hca 1 "H-2"
[1] "S-1"[2]
"""

SETUP = f"""
set -e
systemctl mask opensm.service
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends ibsim-utils opensm >/dev/null
mkdir -p {HOME}
printf %s {shlex.quote(NET)} >{HOME}/net
# Without an input, the simulator ends.
systemd-run --quiet --unit=fabric --working-directory={HOME} sh -c 'sleep infinity | ibsim -s net'
"""

FILES = """
import os, shutil, subprocess, sys
os.listdir("/sys/class/infiniband")
shutil.rmtree("root", ignore_errors=True)
# Without the library of ibsim (LD_PRELOAD), so that cp reads the real path of these files.
subprocess.run(["cp", "-rL", f"sys-{os.getpid()}", "root"], check=True, env={"PATH": os.environ["PATH"]})
"""

ASK = """
import json, sys
from pathlib import Path
sys.path.insert(0, "/usr/local/lib")
from inference.core import commands
from inference.hardware.rdma_settings import boot
from inference.node.doctor import rdma_ladder

run = lambda words: commands.run(list(words), 20)
facts = boot.gather(Path("root"), run)
steps = rdma_ladder.climb(facts, None, None, rdma_ladder.silent_managers(facts, run))
((port,),) = [device["ports"] for device in facts["rdma_devices"]]
print(json.dumps({"port": port, "steps": {step.name: [step.status, step.message] for step in steps}}))
"""

PARTITIONS = """
import sys
sys.path.insert(0, "/usr/local/lib")
from inference.hardware.rdma_settings import infiniband, variables
(text,) = infiniband.texts(variables.Wish(subnet_manager=True, partition_keys=["0x8001"], mtu=4092)).values()
print(text)
"""


def simulated(node: Node, command: str) -> str:
    """Run a command on the simulated node."""
    return node.run(f"cd {HOME} && SIM_HOST=H-2 timeout 60 ibsim-run {command}")


def ladder(node: Node) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The facts of the simulated node's port, and the ladder's steps: status and message by name."""
    simulated(node, f"python3 -c {shlex.quote(FILES)}")
    node.run(f"echo InfiniBand >{HOME}/root/sys/class/infiniband/ibsim0/ports/1/link_layer")
    said = json.loads(simulated(node, f"python3 -c {shlex.quote(ASK)}"))
    return said["port"], said["steps"]


@pytest.fixture
def fabric(node: Node) -> Iterator[Node]:
    node.module("baremetal.inference.node_tool")
    node.run(SETUP)
    yield node
    node.run("systemctl stop fabric manager; systemctl unmask opensm.service", check=False)


def test_a_subnet_manager_is_missing_present_and_ended(fabric: Node) -> None:
    port, steps = ladder(fabric)
    assert (port["state"], port["sm_lid"], port["partition_keys"]) == ("INIT", 0, ["0xffff"])
    assert steps["links"] == [
        "fail",
        "ibsim0/1 is INIT: no subnet manager makes the port active; set rdma_subnet_manager on one node, or start a "
        "switch's manager",
    ]

    fabric.run(f"python3 -c {shlex.quote(PARTITIONS)} >{HOME}/partitions")
    fabric.run(
        f"systemd-run --quiet --unit=manager --working-directory={HOME} --setenv=SIM_HOST=H-1 "
        f"ibsim-run opensm -f {HOME}/log -P {HOME}/partitions"
    )
    port = wait_for("the port is active", lambda: (found := ladder(fabric)[0])["state"] == "ACTIVE" and found, 60)
    # opensm takes the partitions of the role: the port is a full member of both.
    assert port["sm_lid"] and sorted(port["partition_keys"]) == ["0x8001", "0xffff"]
    assert ladder(fabric)[1]["gids"] == ["ok", "all rails have a GID or a subnet manager"]

    fabric.run("systemctl stop manager")
    port, steps = ladder(fabric)
    # The kernel's files still name the manager that has ended.
    assert port["state"] == "ACTIVE" and port["sm_lid"]
    assert steps["gids"][0] == "warn" and f"does not answer (ibsim0/1: LID {port['sm_lid']})" in steps["gids"][1]
