#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: disks
short_description: Format blank disks, and mount disks and NFS exports, without ever overwriting data
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Formats a device only if it is provably blank. Two checks by libblkid must find no signature. The device must have
    no partition and no holder (array, volume, mapping), and must not be mounted, swap or read-only. The kernel must
    open it exclusively. Its first 4 MiB must be empty, and its last sector readable.
  - Repeats all these checks under a lock, right before the format. No option overrides them.
  - Recognises a file system of its own by the label C(inf-NAME), also after a reinstallation of the node. Such a file
    system is kept and mounted. A device with any other content stays unchanged, and the error names the content.
  - Joins several blank devices by md (raid0) or LVM (striped) first. The name of the array or volume group is
    C(inf-NAME), too.
  - Mounts by UUID, and puts the old C(/etc/fstab) back if a mount fails. All lines get C(nofail) and a time limit, so
    that a dead disk or server does not block a boot. After a boot, NFS exports are mounted on first use.
  - Creates directories only on the mounted file system. The empty mount point below becomes immutable if its file
    system supports this. Then nothing fills the root disk while the disk is missing. C(chattr -i) removes the
    attribute.
  - Reports all mistakes at once, before the first change. A disk that is no longer declared stays unchanged, and is
    returned in RV(undeclared).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - The content of an array or a volume group is only checked if it is assembled.
  diff_mode:
    support: full
options:
  disks:
    description: The disks.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name, from which the label C(inf-NAME) is made. 1 to 8 characters of a-z, 0-9 and dash, the
          first not a dash.
        type: str
        required: true
      devices:
        description: The whole disks or partitions, by their names below C(/dev/disk/by-id) or C(/dev/disk/by-path).
        type: list
        elements: str
        required: true
      join:
        description: How to join several devices.
        type: str
        choices: [none, raid0, lvm]
        default: none
      filesystem:
        description: The file system.
        type: str
        choices: [ext4, xfs]
        default: ext4
      path:
        description: The mount point. It must be empty, or must not exist.
        type: str
        required: true
      options:
        description: Mount options, in addition to those of the module.
        type: list
        elements: str
        default: [noatime]
      directories:
        description: Directories to create on the disk.
        type: list
        elements: dict
        default: []
        suboptions:
          path:
            description: The path, relative to the mount point. A single dot is the mount point itself.
            type: str
            required: true
          owner:
            description: Name or number of the owner.
            type: str
            default: root
          group:
            description: Name or number of the group.
            type: str
            default: root
          mode:
            description: The mode, as four octal digits.
            type: str
            default: "0755"
      adopt:
        description: Mount the device's existing file system, with any label. Never formats the device.
        type: bool
        default: false
  shares:
    description: The NFS exports.
    type: list
    elements: dict
    default: []
    suboptions:
      source:
        description: The export, as SERVER:/EXPORT.
        type: str
        required: true
      path:
        description: The mount point. It must be empty, or must not exist.
        type: str
        required: true
      options:
        description: Mount options, in addition to those of the module.
        type: list
        elements: str
        default: [hard]
      version:
        description: The version of NFS.
        type: str
        choices: ["3", "4.0", "4.1", "4.2"]
        default: "4.2"
"""

EXAMPLES = r"""
- name: Mount the store, and the workspace on two NVMe drives
  baremetal.inference.disks:
    disks:
      - name: models
        devices: [/dev/disk/by-id/ata-Vendor_Model_S4567]
        path: /mnt/models
      - name: nvme
        devices:
          - /dev/disk/by-id/nvme-Vendor_Model_S0123
          - /dev/disk/by-id/nvme-Vendor_Model_S0124
        join: raid0
        filesystem: xfs
        path: /mnt/nvme/workspace
        directories:
          - path: models
          - path: scratch
            owner: inference
            group: inference
            mode: "0750"
"""

RETURN = r"""
differs:
  description: The changes, or in check mode the changes to come, one phrase each, with missing packages.
  returned: success
  type: list
  elements: str
packages:
  description: Needed packages that are not installed. Outside check mode, missing packages are an error.
  returned: success
  type: list
  elements: str
undeclared:
  description: Mounts of this module that are no longer declared.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disks as dk
from ansible_collections.baremetal.inference.plugins.module_utils.debian import fstab
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disk_host import FSTAB, Host
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disk_setup import ERRORS, Pass

DIRECTORY = {
    "path": {"type": "str", "required": True},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "str", "default": "0755"},
}
DISK = {
    "name": {"type": "str", "required": True},
    "devices": {"type": "list", "elements": "str", "required": True},
    "join": {"type": "str", "choices": ["none", "raid0", "lvm"], "default": "none"},
    "filesystem": {"type": "str", "choices": ["ext4", "xfs"], "default": "ext4"},
    "path": {"type": "str", "required": True},
    "options": {"type": "list", "elements": "str", "default": ["noatime"]},
    "directories": {"type": "list", "elements": "dict", "default": [], "options": DIRECTORY},
    "adopt": {"type": "bool", "default": False},
}
SHARE = {
    "source": {"type": "str", "required": True},
    "path": {"type": "str", "required": True},
    "options": {"type": "list", "elements": "str", "default": ["hard"]},
    "version": {"type": "str", "choices": ["3", "4.0", "4.1", "4.2"], "default": "4.2"},
}
ARGUMENTS = {
    "disks": {"type": "list", "elements": "dict", "default": [], "options": DISK},
    "shares": {"type": "list", "elements": "dict", "default": [], "options": SHARE},
}


def run(module: AnsibleModule, host: Host) -> dict[str, Any]:
    """Plan all changes, and (outside check mode) make them. Returns the result. Raises DiskError and OSError."""
    disks, problems = dk.declared_disks(module.params["disks"])
    shares, more = dk.declared_shares(module.params["shares"])
    problems += [*more, *dk.path_problems(disks, shares)]
    before = host.fstab()
    wrong = {problem.where for problem in problems}
    rehearsal = Pass(host, disks, shares, rehearsal=True, users=not module.check_mode, without=wrong)
    rehearsal.run()
    problems += rehearsal.problems
    if problems:
        raise dk.DiskError("\n- ".join(["Nothing was changed.", *map(str, problems)]))
    missing = host.missing(disks, shares)
    if missing and not module.check_mode:
        raise dk.DiskError(f"Packages are missing: {', '.join(missing)}. Install them first. Nothing was changed")
    done = rehearsal
    if rehearsal.actions and not module.check_mode:
        done = Pass(host, disks, shares, rehearsal=False)
        try:
            done.run()
        except (*ERRORS, OSError) as error:
            so_far = "; ".join(done.actions) or "nothing"
            raise dk.DiskError(f"{error}\nDone before that: {so_far}") from error
    declared = {disk.path for disk in disks} | {share.path for share in shares}
    steps = "".join(f"{action}\n" for action in done.actions)
    return {
        "changed": bool(done.actions or (missing and module.check_mode)),
        "differs": [*([f"install {', '.join(missing)}"] if missing else []), *done.actions],
        "packages": missing,
        "undeclared": [f"{line.source} at {line.path}" for line in fstab.undeclared(done.fstab, declared)],
        "diff": [
            {"before_header": str(FSTAB), "after_header": str(FSTAB), "before": before, "after": done.fstab},
            {"before_header": "steps", "after_header": "steps", "before": "", "after": steps},
        ],
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        result = run(module, Host())
    except (*ERRORS, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=str(error))
    if result["undeclared"]:
        module.warn(
            f"no longer declared, but still mounted at boot: {'; '.join(result['undeclared'])}. To remove a mount, stop"
            f" the programs that use it, unmount it, and remove its line from {FSTAB}."
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
