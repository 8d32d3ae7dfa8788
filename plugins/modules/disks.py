#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: disks
short_description: Make blank disks into mounted file systems, and mount NFS exports, without harm to any data
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Formats a device only when it is provably blank. libblkid, asked in two ways, finds no signature on it; it has no
    partition and no holder (array, volume, mapping); it is neither mounted nor swap nor read-only; the kernel opens it
    exclusively; its first 4 MiB are empty and its last sector can be read. All of that is looked at again, under a
    lock, right before the format. Nothing overrides it.
  - A file system that this module made is known by its label C(inf-NAME), also after the node was installed anew. It is
    kept and mounted. Any other content is left alone, and the error says what it is.
  - Several blank devices are joined by md (raid0) or LVM (striped) first. The array or the group has the same name.
  - Mounts by UUID, and puts the old C(/etc/fstab) back where a mount fails. All lines get C(nofail) and a time limit,
    so that neither a dead disk nor a dead server holds up a boot. NFS exports are mounted on first use after a boot.
  - Directories are made on the mounted file system only. The empty mount point below gets the attribute immutable where
    its file system knows it, so that nothing fills the root disk while the disk is away; C(chattr -i) takes it off.
  - All mistakes are reported at once, before the first change. A disk that is declared no more stays as it is and is
    reported in RV(undeclared).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - What an array or a group that is not assembled holds is seen only once it is.
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
        description: Becomes the label C(inf-NAME). 1 to 8 characters of a-z, 0-9 and dash.
        type: str
        required: true
      devices:
        description: Names below C(/dev/disk/by-id) or C(/dev/disk/by-path), of whole disks or partitions.
        type: list
        elements: str
        required: true
      join:
        description: What makes several devices one.
        type: str
        choices: [none, raid0, lvm]
        default: none
      filesystem:
        description: The file system.
        type: str
        choices: [ext4, xfs]
        default: ext4
      path:
        description: The mount point. It must be empty, or not be there.
        type: str
        required: true
      options:
        description: Mount options, besides those that the module adds.
        type: list
        elements: str
        default: [noatime]
      directories:
        description: Directories to make on the disk.
        type: list
        elements: dict
        default: []
        suboptions:
          path:
            description: Relative to the mount point; a single dot is the mount point itself.
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
            description: Four octal digits.
            type: str
            default: "0755"
      adopt:
        description: Mount the file system that is there, whatever its label is. Never formats.
        type: bool
        default: false
  shares:
    description: The NFS exports.
    type: list
    elements: dict
    default: []
    suboptions:
      source:
        description: SERVER:/EXPORT.
        type: str
        required: true
      path:
        description: The mount point. It must be empty, or not be there.
        type: str
        required: true
      options:
        description: Mount options, besides those that the module adds.
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
  description: What was done, or would be in check mode, one sentence each, the installation of packages included.
  returned: success
  type: list
  elements: str
packages:
  description: Packages that are needed and not installed. Outside check mode this is an error.
  returned: success
  type: list
  elements: str
undeclared:
  description: What this module mounts at boot and is declared no more.
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
    """Rehearse, and (outside check mode) act; returns the module's result. Raises DiskError and OSError."""
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
        raise dk.DiskError(f"These packages are needed first: {', '.join(missing)}. Nothing was changed")
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
            f"no longer declared, and left as it is: {'; '.join(result['undeclared'])}. To give it up, stop what uses"
            f" it, unmount it, and remove its line from {FSTAB}."
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
