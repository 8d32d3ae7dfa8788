#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_facts
short_description: Report what a machine has before its first set-up
version_added: 0.2.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reports what M(baremetal.inference.gpu_facts) and M(baremetal.inference.rdma_facts) do not report. The playbook
    C(baremetal.inference.discover) writes an inventory from these facts.
  - Changes nothing. Needs only packages that every Debian machine has. Run the module as root, because other users see
    neither disks nor the processes of others.
  - Never fails for a missing or broken program. Unknown values are null or empty.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to read. V(system) reads names, addresses, release, kernel and memory. V(disks) reads the disks with what
        is on them. V(services) finds listening programs, and asks those that serve models for the names of
        their models. V(docker), V(firewall) and V(clock) find the programs that manage each of these. V(secure_boot)
        reads the state of the firmware.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read.
    type: list
    elements: str
    choices:
      - all
      - min
      - system
      - '!system'
      - disks
      - '!disks'
      - services
      - '!services'
      - docker
      - '!docker'
      - firewall
      - '!firewall'
      - clock
      - '!clock'
      - secure_boot
      - '!secure_boot'
    default: [all]
  root:
    description: The root directory with C(proc), C(sys), C(dev) and C(etc). Programs always show the running system.
    type: path
    default: /
  timeout:
    description: The time limit of each program, in seconds.
    type: float
    default: 20
seealso:
  - module: baremetal.inference.gpu_facts
  - module: baremetal.inference.rdma_facts
"""

EXAMPLES = r"""
- name: Read everything
  baremetal.inference.host_facts:
  register: found

- name: Find what serves models on the machine
  baremetal.inference.host_facts:
    gather_subset: [services]
  register: serving
"""

RETURN = r"""
system:
  description: Names, addresses, release, kernel and memory.
  returned: with the subset V(system)
  type: dict
  contains:
    hostname:
      description: The kernel's name of the machine.
      type: str
      sample: gpu-01
    machine_id:
      description: The content of C(/etc/machine-id). Copies of one disk have the same.
      type: str
    boot_id:
      description: The id of this boot, which no other machine has.
      type: str
    debian:
      description: The major version of Debian; null on another operating system.
      type: int
      sample: 12
    pretty_name:
      description: The system's own name.
      type: str
      sample: Debian GNU/Linux 12 (bookworm)
    proxmox:
      description: The version of Proxmox VE; empty without it.
      type: str
    architecture:
      description: The processor's architecture, as the kernel names it.
      type: str
      sample: x86_64
    kernel:
      description: The release of the running kernel.
      type: str
    cmdline:
      description: The kernel's command line.
      type: str
    cpus:
      description: The number of processors.
      type: int
    memory_mib:
      description: The memory in MiB.
      type: int
    numa_nodes:
      description: The number of NUMA nodes.
      type: int
    virtualization:
      description: The kind of virtual machine or container; empty on hardware.
      type: str
    repositories:
      description: The addresses of APT's enabled repositories.
      type: list
      elements: str
    addresses:
      description: The addresses with their network devices and the lengths of their prefixes.
      type: list
      elements: dict
    default_device:
      description: The network device of the default route; null without one.
      type: str
disks:
  description: The whole disks.
  returned: with the subset V(disks)
  type: list
  elements: dict
  contains:
    path:
      description: The name below C(/dev/disk/by-id).
      type: str
    size:
      description: The size in bytes.
      type: int
    model:
      description: The model.
      type: str
    nvme:
      description: Whether the disk is an NVMe drive.
      type: bool
    obstacles:
      description: Why the disk is not certainly blank. Empty if it is blank.
      type: list
      elements: str
services:
  description:
    - The programs that listen on an address of the network, and those on loopback that serve models or notebooks.
  returned: with the subset V(services)
  type: list
  elements: dict
  contains:
    port:
      description: The port.
      type: int
    address:
      description: The address of the socket.
      type: str
    pid:
      description: The process; null if it was not found.
      type: int
    program:
      description: The file name of the program.
      type: str
    kind:
      description: The kind of a program that serves models or notebooks, such as V(vllm) or V(jupyter); else empty.
      type: str
    unit:
      description: The systemd unit; empty for a container.
      type: str
    container:
      description: The name of the container; empty without one.
      type: str
    model:
      description: The model in the command line; empty if there is none.
      type: str
    models:
      description: The models that the program reports.
      type: list
      elements: str
    model_path:
      description: The directory of the model on this machine; empty if it was not found.
      type: str
docker:
  description: Docker.
  returned: with the subset V(docker)
  type: dict
  contains:
    owner:
      description: >-
        Where Docker comes from. V(docker) for Docker's own packages, V(debian), V(podman), V(snap), or empty.
      type: str
    version:
      description: The version of the package.
      type: str
    has_settings:
      description: Whether there is C(/etc/docker/daemon.json).
      type: bool
    running:
      description: The names of the running containers.
      type: list
      elements: str
firewall:
  description: The firewall.
  returned: with the subset V(firewall)
  type: dict
  contains:
    others:
      description: Other active firewalls.
      type: list
      elements: str
    foreign_rules:
      description: Whether C(/etc/nftables.conf) has rules that this collection did not write.
      type: bool
clock:
  description: The clock.
  returned: with the subset V(clock)
  type: dict
  contains:
    daemons:
      description: The running programs that set the clock.
      type: list
      elements: str
    synchronized:
      description: Whether the clock is synchronised; null if unknown.
      type: bool
secure_boot:
  description: Secure Boot.
  returned: with the subset V(secure_boot)
  type: dict
  contains:
    efi:
      description: Whether UEFI has booted the machine.
      type: bool
    enabled:
      description: Whether unsigned kernel modules are refused; null if unknown.
      type: bool
    setup_mode:
      description: Whether the firmware has no platform key yet; null if unknown.
      type: bool
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import ALL, choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import BlockDevices
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import owners, services, storage, system
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import secure_boot

PARTS = ("system", "disks", "services", "docker", "firewall", "clock", "secure_boot")

ARGUMENTS = {
    "gather_subset": {"type": "list", "elements": "str", "choices": choices(PARTS), "default": [ALL]},
    "root": {"type": "path", "default": "/"},
    "timeout": {"type": "float", "default": 20},
}


def readers(root: Path, timeout: float) -> dict[str, Callable[[], Any]]:
    """A function for each subset that reads it."""

    def run(command: list[str]) -> commands.Outcome:
        return commands.run(command, timeout)

    def ask(*command: str, **_more: Any) -> tuple[int, str]:
        outcome = commands.run(command, timeout)
        code = 1 if outcome.code is None else outcome.code
        return code, outcome.stdout + ((outcome.stderr or outcome.message) if code else "")

    def firmware() -> dict[str, Any]:
        return asdict(secure_boot.state(root, run(["mokutil", "--sb-state"]).stdout))

    blocks = BlockDevices(ask, sys=root / "sys", proc=root / "proc", dev=root / "dev")
    return {
        "system": lambda: system.read(root, run),
        "disks": lambda: storage.read(blocks),
        "services": lambda: services.read(root / "proc", run),
        "docker": lambda: owners.docker(root, run),
        "firewall": lambda: owners.firewall(root, run),
        "clock": lambda: owners.clock(run),
        "secure_boot": firmware,
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    timeout = module.params["timeout"]
    if not timeout > 0:
        module.fail_json(msg=f"timeout: {timeout:g}: must be more than 0 seconds")
    parts = chosen(module.params["gather_subset"], PARTS)
    found = {name: read() for name, read in readers(Path(module.params["root"]), timeout).items() if name in parts}
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
