#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_removal
short_description: Remove what this collection has left on a node without instances
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Removes agent, recovery, the node tool with its library, the engines' target, C(/etc/inference),
    C(/var/lib/inference) and what was written for node_exporter. The lock of the run that asks for it goes along.
  - Refuses while an instance is left. M(baremetal.inference.engine_removal) takes those off.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  keep:
    description: Files below these directories that stay, because what they tell of stays.
    type: list
    elements: path
    default: []
  also:
    description:
      - Directories of engines that go as well, as that of the compile caches. Above them, what is empty then goes, too.
    type: list
    elements: path
    default: []
"""

EXAMPLES = r"""
- name: Remove the rest
  baremetal.inference.node_removal:
    keep: [/var/lib/inference/docker-daemon.json]
"""

RETURN = r"""
removed:
  description: What went, or would in check mode.
  returned: success
  type: list
  elements: str
"""

import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

# Ansible sends along what is imported here: the node tool's own parts tell which files it has.
from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    AGENT_UNIT,
    METRICS_TEMPLATE,
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    RECOVERY_TEMPLATE,
    Paths,
    unit_name,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

STAYING = (Path("/"), Path("/mnt"), Path("/srv"), Path("/var"), Path("/var/lib"), Path("/opt"), Path("/home"))
"""Directories that a machine has without us."""


def remove_units(paths: Paths, *, check: bool) -> list[Path]:
    """Stop agent and recovery; remove their units, and slices. Returns the units. Raises SystemdError and OSError."""
    units = [paths.agent_unit, *paths.recovery_units.values()]
    there = [path for path in units if path.exists()]
    if check:
        return there
    # First who asks for a recovery, and who waits for it.
    for name in (AGENT_UNIT, RECOVERY_PATH, RECOVERY_DISPATCH):
        if paths.units / name in there:
            systemd.stop_and_disable(name, installed=True)
    for path in there:
        path.unlink()
    if there:
        systemd.systemctl("daemon-reload")
    templates = [METRICS_TEMPLATE, RECOVERY_TEMPLATE]
    # An engine of somebody else would stop with its slice.
    states = ",".join(sorted({*systemd.RUNNING, "deactivating"}))
    if not systemd.systemctl("list-units", "--plain", "--no-legend", f"--state={states}", unit_name("*")).strip():
        templates.append(unit_name(""))
    for template in templates:
        systemd.stop_and_disable(slice_of(template), installed=False)
    return there


def slice_of(template: str) -> str:
    r"""The slice that systemd makes for a template's instances, and keeps without them until the next boot.

    Source: systemd.slice(5); in its name, a hyphen would stand for a slice within another: \x2d.
    """
    name = template.partition("@")[0].replace("-", r"\x2d")
    return f"system-{name}.slice"


def remove_directories(wanted: list[Path], *, check: bool) -> list[Path]:
    """Remove directories, and those above them that are empty then. Returns what was asked for and was there."""
    there = [path for path in wanted if path.is_dir()]
    for path in [] if check else there:
        shutil.rmtree(path)
        for parent in path.parents:
            if parent in STAYING or parent.is_mount() or any(parent.iterdir()):
                break
            parent.rmdir()
    return there


def main() -> None:
    paths_of = {"type": "list", "elements": "path", "default": []}
    module = AnsibleModule(argument_spec={"keep": paths_of, "also": paths_of}, supports_check_mode=True)
    paths, check = Paths(), module.check_mode
    keep, also = ([Path(each) for each in module.params[key]] for key in ("keep", "also"))
    try:
        if not check:
            removal.refuse_instances(paths)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    try:
        found = remove_units(paths, check=check)
        found += removal.remove_node_traces(paths, keep, check=check)
        tool = node_library.plan(inferctl.__name__, paths.library, paths.command, present=False)
        found += [paths.command, paths.library] if tool.files else []
        if not check:
            tool.apply()
        found += remove_directories(also, check=check)
    except (systemd.SystemdError, ImportError, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Run it again: it goes on from where it stopped.")
    removed = [str(path) for path in found]
    module.exit_json(
        changed=bool(removed),
        removed=removed,
        diff={"before": "".join(f"{path}\n" for path in removed), "after": ""},
    )


if __name__ == "__main__":
    main()
