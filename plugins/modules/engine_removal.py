#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_removal
short_description: Take instances off a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Stops the engines, and removes their units, containers, environments, releases, histories, probes, drains, compile
    caches, and what the recovery has kept of them. Images that only their releases needed go as well.
  - Models stay, and so do logs.
  - Nobody is asked whether clients still need them; the playbook C(decommission) does that, and drains them first.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  names:
    description: The instances. What stands in for one during an update goes along. One that is not there is fine.
    type: list
    elements: str
    required: true
  cache_path:
    description: Where each instance has its compile cache; empty to leave it.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Take an instance off the node
  baremetal.inference.engine_removal:
    names: [main]
    cache_path: /mnt/nvme/workspace/vllm_cache
"""

RETURN = r"""
removed:
  description: The instances that went, or would in check mode.
  returned: success
  type: list
  elements: str
also:
  description: What went with them, as compile caches, containers, images, and entries of the node's registry.
  returned: success
  type: list
  elements: str
"""

import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridge_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk


def images_of(paths: Paths, names: list[str]) -> set[str]:
    """The images that the releases of instances need; one that is damaged needs none any more."""
    found = set()
    for name in names:
        for number in releases.numbers(paths, name):
            try:
                found.add(releases.load(paths, name, number).image)
            except releases.ReleaseError:
                continue
    return found


def remove(
    paths: Paths, docker: Docker, instances: list[str], cache_path: str, *, check: bool
) -> tuple[list[str], list[str]]:
    """The instances that go, and what goes with them. Raises what the parts raise."""
    names = [each for name in instances for each in (name, bridge_name(name))]
    before = images_of(paths, names)
    caches = removal.caches(Path(cache_path), names) if cache_path else []
    removed = [name for name in names if removal.remove(paths, name, check=check)]
    also = [f"entry {name} of the node's registry" for name in removal.forget_models(paths, removed, check=check)]
    for cache in caches:
        also.append(str(cache))
        if not check:
            shutil.rmtree(cache)
    # A node whose Docker was never installed, or is gone, has neither.
    if docker.path.exists():
        # In check mode, those of engines that run are still there, and go with them.
        for name in [] if check else names:
            if removal.remove_container(docker, name):
                also.append(f"container of {name}")
        also += [] if check else [f"image {item.name}" for item in docker_disk.Disk(docker, paths).forget(before)]
    return removed, also


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "cache_path": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        removed, also = remove(Paths(), Docker(), given["names"], given["cache_path"], check=module.check_mode)
    except (releases.ReleaseError, systemd.SystemdError, DockerError, DockerUnavailable, OSError, ValueError) as error:
        module.fail_json(msg=f"{', '.join(given['names'])}: {error}. Run it again: it goes on from where it stopped.")
    lines = [*(f"instance {name}" for name in removed), *also]
    module.exit_json(
        changed=bool(lines),
        removed=removed,
        also=also,
        diff={"before": "".join(f"{line}\n" for line in lines), "after": ""},
    )


if __name__ == "__main__":
    main()
