#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_specs
short_description: Move CDI specifications aside that offer NVIDIA GPUs as they once were
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Specifications of the kind C(nvidia.com/gpu) that somebody once wrote stay when the driver changes, and win or lose
    against the one that C(nvidia-cdi-refresh) keeps, by the directory they are in. Those that
    M(baremetal.inference.cdi_facts) calls stale are moved to O(backup).
  - Stale are those that are for another driver than the loaded one, that name files or devices that do not exist, that
    conflict with another file, and those called C(nvidia*) beside C(/var/run/cdi/nvidia.yaml), which nobody keeps.
  - Specifications of other kinds, and such of names of their own that are still true, stay.
  - Running containers are not touched, since specifications are read when a container starts.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  backup:
    description: Where they are moved to, under their names with the date.
    type: path
    default: /var/lib/inference/cdi-removed
  root:
    description: Directory to read and move everything below.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Have one specification of the GPUs, and that one true
  baremetal.inference.cdi_specs:
  register: result

- name: Say what went
  ansible.builtin.debug:
    msg: "{{ result.removed }}"
  when: result is changed
"""

RETURN = r"""
removed:
  description: What was moved aside, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file.
      type: str
    reason:
      description: Why it had to go.
      type: str
    backup:
      description: Where it is now. V(null) in check mode.
      type: str
"""

import shutil
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import driver


def remove(root: Path, backup: Path, check: bool) -> list[dict[str, Any]]:
    """Move the stale specifications aside, and tell which. Raises OSError."""
    found = cdi.judge(root, cdi.read(root), cdi.Reality(driver.read(root).module_version))
    removed = []
    for finding in found:
        if not finding.stale:
            continue
        path = root / finding.spec.path.lstrip("/")
        # With the directory: both may have one of the same name.
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        place = backup / f"{finding.spec.path.strip('/').replace('/', '-')}.{stamp}"
        if not check:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, place)
        removed.append({"path": finding.spec.path, "reason": finding.stale, "backup": None if check else str(place)})
    return removed


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "backup": {"type": "path", "default": "/var/lib/inference/cdi-removed"},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root = Path(module.params["root"])
    try:
        removed = remove(root, root / module.params["backup"].lstrip("/"), module.check_mode)
    except OSError as error:
        module.fail_json(msg=f"A specification could not be moved aside: {error}")
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
