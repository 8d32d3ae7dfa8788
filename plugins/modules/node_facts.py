#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Report the health, the state and the maintenance needs of a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs the checks of the doctor, summarises the node, and reports what maintenance has to do.
  - Changes nothing on the node but the cache of checksums that the subset V(maintenance) keeps, outside of check mode.
options:
  gather_subset:
    description:
      - V(doctor) checks driver, GPUs, RDMA, system, Docker and engines, as C(inferctl doctor) does on the node. A check
        that breaks or takes too long is V(unknown), and does not count against the node.
        C(/etc/inference/doctor.json), which M(baremetal.inference.node_recovery) writes, lists the checks that are off.
      - V(status) summarises instances, GPUs, the doctor's verdict, the lock, and the last update and backup.
      - V(maintenance) reports a due reboot, the disks, O(certificates), and damaged models in O(store).
      - V(left) finds what this collection has set up on a machine, and the inventory may not name any more - a gateway
        with its floating address, a monitoring host, log shipping. Configurations that others wrote do not count.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out, of V(all) where nothing else is
        given. The module does not read a subset that is left out, and does not return its values.
      - V(doctor) and V(status) take up to 30 seconds each where something hangs.
    type: list
    elements: str
    default: [all]
    choices: [all, min, doctor, '!doctor', status, '!status', maintenance, '!maintenance', left, '!left']
  checks:
    description: Checks of the subset V(doctor), or kinds of checks, that run. If empty, all checks that are on.
    type: list
    elements: str
    default: []
  fail_on:
    description: The verdict of the subset V(doctor) from which on the module fails.
    type: str
    choices: [never, warn, fail]
    default: never
  certificates:
    description: Paths of the certificates in PEM format that the subset V(maintenance) reports.
    type: list
    elements: str
    default: []
  certificate_warn_days:
    description: A certificate with fewer days left has the status V(warn).
    type: int
    default: 30
  certificate_fail_days:
    description: A certificate with fewer days left has the status V(fail).
    type: int
    default: 7
  store:
    description: The root of the model store that the subset V(maintenance) checks. If empty, no store is checked.
    type: str
    default: ""
  store_verify:
    description: Whether every file of the store is read again, and not only files that changed since the last check.
    type: bool
    default: false
  store_cache:
    description: The file that keeps the checksums of the store.
    type: path
    default: /var/lib/inference/manifests.json
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Fail where the driver or a GPU is broken
  baremetal.inference.node_facts:
    gather_subset: [doctor]
    checks: [driver, gpu]
    fail_on: fail

- name: Summarise the node
  baremetal.inference.node_facts:
    gather_subset: [status]
  register: __status

- name: Report what maintenance has to do
  baremetal.inference.node_facts:
    gather_subset: [maintenance]
    certificates: [/etc/ssl/private/gateway.pem]
    store: /mnt/models
"""

RETURN = r"""
verdict:
  description: The worst status of all checks.
  returned: with the subset V(doctor)
  type: str
  sample: warn
checks:
  description: The result of each check.
  returned: with the subset V(doctor)
  type: list
  elements: dict
  contains:
    name:
      description: The check, its kind first.
      type: str
      sample: gpu-xids
    status:
      description: V(ok), V(unknown), V(warn) or V(fail).
      type: str
    message:
      description: What the check found.
      type: str
    action:
      description: What to do about the finding; empty where there is nothing to do.
      type: str
problems:
  description: A line for each check that is not V(ok), the worst first.
  returned: with the subset V(doctor)
  type: list
  elements: str
schema:
  description: The version of the form of the subset V(status).
  returned: with the subset V(status)
  type: int
time:
  description: When the node was read, by its own clock.
  returned: with the subset V(status)
  type: str
  sample: "2026-05-01T12:00:00Z"
system:
  description: C(debian), C(kernel) and C(reboot_required).
  returned: with the subset V(status)
  type: dict
instances:
  description: The instances, as C(inferctl status --json) shows them.
  returned: with the subset V(status)
  type: list
  elements: dict
gpus:
  description: The number of GPUs, their driver, memory and highest temperature.
  returned: with the subset V(status)
  type: dict
doctor:
  description: The C(verdict), and a line for each check that is not V(ok), the worst first.
  returned: with the subset V(status)
  type: dict
lock:
  description: The run that holds the node's lock; null where the lock is free.
  returned: with the subset V(status)
  type: dict
updated:
  description: When a release last began to serve; null where none has.
  returned: with the subset V(status)
  type: str
backup:
  description:
    - C(since) when backups are configured, and the longest C(interval) of their schedule in seconds; 0 without a
      schedule, null where the interval is not known.
    - When a backup last C(succeeded), and whether the last backup was C(ok), which is null until a backup has ended.
    - Null altogether where backups were never configured.
  returned: with the subset V(status)
  type: dict
errors:
  description: Why a part of the subset V(status) is null, by the name of the part.
  returned: with the subset V(status)
  type: dict
reboot_reasons:
  description: Why a reboot is due; empty where none is.
  returned: with the subset V(maintenance)
  type: list
  elements: str
driver:
  description: Whether DKMS builds the NVIDIA driver for the node's kernels.
  returned: with the subset V(maintenance)
  type: bool
disks:
  description: A line for each file system.
  returned: with the subset V(maintenance)
  type: list
  elements: str
certificates:
  description: The certificates.
  returned: with the subset V(maintenance)
  type: list
  elements: dict
  contains:
    path:
      description: The path of the certificate.
      type: str
    days:
      description: The number of days left; null where the certificate cannot be read.
      type: int
    status:
      description: V(ok), V(warn) or V(fail).
      type: str
    words:
      description: The same for people.
      type: str
damaged:
  description: What is wrong with published models.
  returned: with the subset V(maintenance)
  type: list
  elements: str
models:
  description: The number of published revisions that were checked.
  returned: with the subset V(maintenance)
  type: int
left:
  description: Which of C(gateway), C(monitoring) and C(logs) is on the machine.
  returned: with the subset V(left)
  type: list
  elements: str
gateway:
  description: What is left of a gateway.
  returned: with the subset V(left)
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: Our files that are there.
      type: list
      elements: str
    floating_address:
      description: The address that keepalived shares with other gateways. Empty for none.
      type: str
      sample: 192.0.2.10/24
monitoring:
  description: What is left of a monitoring host.
  returned: with the subset V(left)
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: Our files that are there.
      type: list
      elements: str
logs:
  description: What is left of log shipping.
  returned: with the subset V(left)
  type: dict
  contains:
    files:
      description: Our files that are there.
      type: list
      elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths

ARGUMENTS = {
    "gather_subset": {
        "type": "list",
        "elements": "str",
        "default": ["all"],
        "choices": choices(("doctor", "status", "maintenance", "left")),
    },
    "checks": {"type": "list", "elements": "str", "default": []},
    "fail_on": {"type": "str", "choices": ["never", "warn", "fail"], "default": "never"},
    "certificates": {"type": "list", "elements": "str", "default": []},
    "certificate_warn_days": {"type": "int", "default": 30},
    "certificate_fail_days": {"type": "int", "default": 7},
    "store": {"type": "str", "default": ""},
    "store_verify": {"type": "bool", "default": False},
    "store_cache": {"type": "path", "default": str(Paths().store_hashes)},
}


SPECIFICATION = {"argument_spec": ARGUMENTS, "supports_check_mode": True}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
