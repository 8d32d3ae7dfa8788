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
  - Runs the checks of the doctor, summarises the node, and reports what maintenance must do.
  - Changes nothing on the node, except the cache of checksums of the subset V(maintenance), outside of check mode.
options:
  gather_subset:
    description:
      - V(doctor) checks driver, GPUs, RDMA, system, Docker, engines, and the certificate of a gateway, like
        C(inferctl doctor). A check that breaks or takes too long is V(unknown), and does not count as a fault.
        C(/etc/inference/doctor.json) of M(baremetal.inference.node_recovery) lists the checks that are off.
      - V(status) summarises instances, GPUs, the doctor's verdict, the lock, and the last update and backup.
      - V(maintenance) reports a due reboot, settings of RDMA rails that wait for a drain, the disks, O(certificates),
        and damaged models in O(store).
      - V(left) finds services that earlier runs have set up, which the inventory may no longer have. These are a
        gateway with its floating address, a monitoring host, and log shipping. A configuration that this collection did
        not write does not count.
      - V(in_use) finds what a reboot would end. These are instances that have answered a request since their start. If
        there is none, these are other programs with an open GPU.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read. Values of a subset that is left out are not returned.
      - V(doctor) and V(status) take up to 30 seconds each if something hangs.
    type: list
    elements: str
    default: [all]
    choices:
      [all, min, doctor, '!doctor', status, '!status', maintenance, '!maintenance', left, '!left', in_use, '!in_use']
  checks:
    description: The checks, or kinds of checks, of the subset V(doctor) to run. If empty, all checks that are on.
    type: list
    elements: str
    default: []
  fail_on:
    description: The verdict of the subset V(doctor) at which the module fails. With V(warn), it also fails for V(fail).
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
    description: Whether to read every file of the store again, not only files that have changed since the last check.
    type: bool
    default: false
  store_cache:
    description: The file with the checksums of the store.
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
- name: Fail if the driver or a GPU is broken
  baremetal.inference.node_facts:
    gather_subset: [doctor]
    checks: [driver, gpu]
    fail_on: fail

- name: Summarise the node
  baremetal.inference.node_facts:
    gather_subset: [status]
  register: __status

- name: Report what maintenance must do
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
      description: The name of the check. It begins with the kind.
      type: str
      sample: gpu-xids
    status:
      description: V(ok), V(unknown), V(warn) or V(fail).
      type: str
    message:
      description: The finding.
      type: str
    action:
      description: What to do about the finding; empty for nothing.
      type: str
problems:
  description: A line for each check that is not V(ok), the worst first.
  returned: with the subset V(doctor)
  type: list
  elements: str
schema:
  description: The version of the format of the subset V(status).
  returned: with the subset V(status)
  type: int
time:
  description: The time of the reading, by the node's clock.
  returned: with the subset V(status)
  type: str
  sample: "2026-05-01T12:00:00Z"
system:
  description: C(debian), C(kernel) and C(reboot_required).
  returned: with the subset V(status)
  type: dict
instances:
  description: The instances, in the format of C(inferctl status --json).
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
rails_waiting:
  description: The settings of RDMA rails that waited for a drain when the rails were last set.
  returned: with the subset V(status)
  type: list
  elements: str
lock:
  description: The run that holds the node's lock; null if the lock is free.
  returned: with the subset V(status)
  type: dict
updated:
  description: When a release last began to serve; null for never.
  returned: with the subset V(status)
  type: str
backup:
  description:
    - C(since) is when backups were configured. C(interval) is the longest interval of their schedule in seconds; 0
      without a schedule, null if unknown.
    - C(succeeded) is the time of the last successful backup. C(ok) is whether the last backup succeeded; null until a
      backup has ended.
    - Null if backups were never configured.
  returned: with the subset V(status)
  type: dict
errors:
  description: Why a value of the subset V(status) is null, by the value's name.
  returned: with the subset V(status)
  type: dict
reboot_reasons:
  description: Why a reboot is due; empty if none is due.
  returned: with the subset V(maintenance)
  type: list
  elements: str
driver:
  description: Whether DKMS builds the NVIDIA driver; false without DKMS.
  returned: with the subset V(maintenance)
  type: bool
rails_due:
  description: The recorded settings of RDMA rails that differ, and that need a drained node.
  returned: with the subset V(maintenance)
  type: list
  elements: str
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
      description: The number of days until the expiry; null if the certificate cannot be read.
      type: int
    status:
      description: V(ok), V(warn) or V(fail).
      type: str
    words:
      description: The same as a sentence for operators.
      type: str
damaged:
  description: The damage of published models.
  returned: with the subset V(maintenance)
  type: list
  elements: str
models:
  description: The number of published revisions that were checked.
  returned: with the subset V(maintenance)
  type: int
left:
  description: Which of C(gateway), C(monitoring) and C(logs) the machine has.
  returned: with the subset V(left)
  type: list
  elements: str
gateway:
  description: The services and files of a gateway on the machine.
  returned: with the subset V(left)
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: The existing files of this collection.
      type: list
      elements: str
    floating_address:
      description: The floating address in keepalived's configuration; empty for none.
      type: str
      sample: 192.0.2.10/24
    serves:
      description: V(plain) or V(tls), as HAProxy's configuration of this collection says; empty without one.
      type: str
    authority:
      description:
        - The site's own CA on the gateway. C(lead) is whether the gateway has the CA's key, C(root) the fingerprint of
          the CA's certificate.
      type: dict
monitoring:
  description: The services and files of a monitoring host on the machine.
  returned: with the subset V(left)
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: The existing files of this collection.
      type: list
      elements: str
logs:
  description: The files of log shipping on the machine.
  returned: with the subset V(left)
  type: dict
  contains:
    files:
      description: The existing files of this collection.
      type: list
      elements: str
in_use:
  description: What a reboot of the node would end, one sentence each; empty for a node that is not in use.
  returned: with the subset V(in_use)
  type: list
  elements: str
  sample: [the instance main runs]
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
        "choices": choices(("doctor", "status", "maintenance", "left", "in_use")),
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
