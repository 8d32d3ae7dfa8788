#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_doctor
short_description: Ask whether a node is fit to serve
version_added: 0.1.0
description:
  - Looks at driver, GPUs, RDMA, system, Docker and engines, as C(inferctl doctor) does on the node, and changes
    nothing. It takes up to 30 seconds where something hangs.
  - A check that breaks or takes too long is V(unknown), and condemns no node. Which checks are off stands in
    C(/etc/inference/doctor.json), which M(baremetal.inference.node_recovery) writes.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  checks:
    description: Checks, or kinds of them, to ask for; all that are on, if left out.
    type: list
    elements: str
    default: []
  fail_on:
    description: The verdict from which on the module fails.
    type: str
    choices: [never, warn, fail]
    default: never
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Look at the GPUs
  baremetal.inference.node_doctor:
    checks: [driver, gpu]
    fail_on: fail
"""

RETURN = r"""
verdict:
  description: The worst status of all checks.
  returned: always
  type: str
  sample: warn
checks:
  description: What each check found.
  returned: always
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
      description: What was found.
      type: str
    action:
      description: What to do about it, empty where nothing is to be done.
      type: str
problems:
  description: A line for each check that is not V(ok), the worst first.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue, check
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

FAILING = {"never": (), "warn": (check.WARN, check.FAIL), "fail": (check.FAIL,)}


def lines(results: list[check.Result]) -> list[str]:
    """What is not fine, the worst first."""
    wrong = [result for result in results if result.status != check.OK]
    wrong.sort(key=lambda result: -check.STATUSES.index(result.status))
    return [
        f"{result.status}: {result.name}: {result.message}" + (f" -> {result.action}" if result.action else "")
        for result in wrong
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "checks": {"type": "list", "elements": "str", "default": []},
            "fail_on": {"type": "str", "choices": list(FAILING), "default": "never"},
        },
        supports_check_mode=True,
    )
    unknown = catalogue.unknown(module.params["checks"])
    if unknown:
        module.fail_json(msg="; ".join(unknown))
    paths = Paths()
    try:
        settings = catalogue.read(paths)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    host = Host(paths, thresholds=settings.thresholds)
    results = check.run(catalogue.chosen(module.params["checks"], settings.off), host)
    found = {**check.as_json(results), "problems": lines(results)}
    del found["schema"]
    if found["verdict"] in FAILING[module.params["fail_on"]]:
        module.fail_json(msg=f"The node is not fit to serve: {'; '.join(found['problems'])}", **found)
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
