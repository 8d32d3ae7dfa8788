# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns the nodes into bare machines: each gets an account that may use sudo, and deb13 gets an H100.

The kernel's view of the GPU, the kernel modules, libcuda and nvidia-smi are simulated. The packages have the vendor's
names, and lie in signed repositories on the node.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from newcomer import ADMIN
from node import Node
from nvidia_packages import NEW, driver
from repository import Package, Repository
from toolkit_packages import UUID, toolkits

SIMULATION = Path(__file__).with_name("simulation")
HOME = "/opt/simulation"

LINKS = {
    "libcuda1": ("libcuda.so.1", "/usr/lib/x86_64-linux-gnu"),
    "nvidia-driver-cuda": ("nvidia-smi", "/usr/bin"),
}
"""By package: the simulated file, and the directory that gets a link to this file."""

ACCOUNT = f"""
useradd --create-home --shell /bin/bash {ADMIN}
echo '{ADMIN} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{ADMIN}
install -d -m 700 -o {ADMIN} -g {ADMIN} /home/{ADMIN}/.ssh
install -m 600 -o {ADMIN} -g {ADMIN} /root/.ssh/authorized_keys /home/{ADMIN}/.ssh/
"""

INSTALL = f"""
cd {HOME}
gcc -shared -fPIC -o libcuda.so.1 libcuda.c
sed -i s/@UUID@/{UUID}/ nvidia-smi report.xml
install modprobe /usr/local/sbin/
install -m 644 simulated-gpu.service /etc/systemd/system/
chmod 755 plug nvidia-smi
systemctl enable --now simulated-gpu.service
"""


def packages() -> Iterator[Package]:
    """The driver's packages. Files in LINKS are links to the simulation."""
    for package in driver(NEW):
        name, directory = LINKS.get(package.name, ("", ""))
        if name:
            link = f'[ "$1" != configure ] || ln -sf {HOME}/{name} {directory}/{name}; ldconfig'
            package = replace(package, files={}, scripts={"postinst": link})
        yield package


def publish(node: Node, origin: str, made: Iterator[Package]) -> None:
    """Build a repository that the node does not use yet."""
    repository = Repository(node, origin)
    repository.publish(made)
    node.run(f"rm {repository.source}; apt-get -qq update")


def plug_in(node: Node) -> None:
    """Simulate a GPU in a machine."""
    node.run(f"mkdir -p {HOME}")
    archive = subprocess.check_output(["tar", "-C", str(SIMULATION), "-c", "."])
    subprocess.run(node.argv("tar", "-C", HOME, "-x"), input=archive, check=True)
    node.run(INSTALL)


if __name__ == "__main__":
    for name in ("deb12", "deb13"):
        Node(name).run(ACCOUNT)
    machine = Node("deb13")
    publish(machine, "NVIDIA", packages())
    publish(machine, "Toolkit", toolkits())
    plug_in(machine)
