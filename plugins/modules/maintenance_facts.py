#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_facts
short_description: What a node's maintenance has to report
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Whether a reboot is due and why, how full the disks are, how long certificates last, and whether the store's models
    are what their manifests say. Changes nothing but the cache of checksums.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  certificates:
    description: Paths of certificates, in PEM.
    type: list
    elements: str
    default: []
  warn_days:
    description: From how many days before its end a certificate is warned of.
    type: int
    default: 30
  fail_days:
    description: From how many days before its end a certificate is a failure.
    type: int
    default: 7
  store:
    description: The root of the store of models; empty to leave it out.
    type: str
    default: ""
  verify:
    description: Whether every file of the store is read again, and not only those that changed since.
    type: bool
    default: false
  cache:
    description: The file with the checksums that are known.
    type: path
    default: /var/lib/inference/manifests.json
"""

EXAMPLES = r"""
- name: Look at the node
  baremetal.inference.maintenance_facts:
    certificates: [/etc/ssl/private/gateway.pem]
    store: /mnt/models
"""

RETURN = r"""
reboot_reasons:
  description: Why a reboot is due; empty where none is.
  returned: success
  type: list
  elements: str
driver:
  description: Whether DKMS builds the NVIDIA driver for the node's kernels.
  returned: success
  type: bool
disks:
  description: A line for each file system.
  returned: success
  type: list
  elements: str
certificates:
  description: The certificates.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Where it lies.
      type: str
    days:
      description: How many days are left; none where nobody can tell.
      type: int
    status:
      description: V(ok), V(warn) or V(fail).
      type: str
    words:
      description: The same for people.
      type: str
damaged:
  description: What is wrong with published models.
  returned: success
  type: list
  elements: str
models:
  description: How many published revisions were looked at.
  returned: success
  type: int
"""

import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands, files
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import read_mounts
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import dkms, kernels
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import report
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import MANIFEST, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

ROOT = Path("/")
SECONDS = 60.0


def reboot_reasons(root: Path) -> list[str]:
    """Why a reboot is due."""
    flag = root / "run/reboot-required"
    try:
        packages = (root / "run/reboot-required.pkgs").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        packages = []
    installed = [kernel.release for kernel in kernels.installed(root)]
    return report.reboot_reasons(flag.exists(), packages, report.pending_kernel(platform.release(), installed))


def has_driver() -> bool:
    """Whether DKMS knows the NVIDIA driver; without DKMS, nothing is built."""
    outcome = commands.run(["dkms", "status"], SECONDS)
    return any(module.is_nvidia_driver for module in dkms.parse(outcome.stdout))


def usages(root: Path) -> list[report.Usage]:
    """The file systems that hold files for good, each once."""
    found: dict[int, report.Usage] = {}
    for mount in read_mounts(root / "proc"):
        path = Path(mount.path)
        # An overlay that is not the root itself is a container's.
        if not report.is_real(mount.kind) or (mount.kind == "overlay" and mount.path != "/") or not path.is_dir():
            continue
        try:
            stat, device = os.statvfs(path), path.stat().st_dev
        except OSError:
            # A server that does not answer is the doctor's matter.
            continue
        usage = report.Usage(mount.path, stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)
        if usage.total and (device not in found or len(mount.path) < len(found[device].path)):
            found[device] = usage
    return sorted(found.values(), key=lambda usage: usage.path)


def certificate(path: str, now: datetime, warn_days: int, fail_days: int) -> report.Certificate:
    """How long one lasts."""
    if not Path(path).is_file():
        return report.unreadable(path, "is not there")
    outcome = commands.run(["openssl", "x509", "-enddate", "-noout", "-in", path], SECONDS)
    return report.certificate(path, outcome.stdout if outcome.code == 0 else "", now, warn_days, fail_days)


def damaged(root: Path, cache: Path, *, verify: bool, read_only: bool) -> tuple[int, list[str]]:
    """How many revisions are published, and what is wrong with them. Raises OSError."""
    records = sorted(path for path in root.glob(f"[!.]*/*/{MANIFEST}") if not path.parent.is_symlink())
    problems = []
    with hash_cache(cache, read_only) as known:
        store = Store(root, known, verify)
        for record in records:
            where = f"{record.parent.parent.name}/{record.parent.name}"
            try:
                plan = store.plan(record.parent.parent.name, Manifest.from_dict(files.read_json(record)))
            except ValueError as error:
                problems.append(f"{where}: {MANIFEST} {error}")
                continue
            problems += [f"{where}: {damage}" for damage in plan.damage]
    return len(records), problems


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "certificates": {"type": "list", "elements": "str", "default": []},
            "warn_days": {"type": "int", "default": 30},
            "fail_days": {"type": "int", "default": 7},
            "store": {"type": "str", "default": ""},
            "verify": {"type": "bool", "default": False},
            "cache": {"type": "path", "default": "/var/lib/inference/manifests.json"},
        },
        supports_check_mode=True,
    )
    given, now = module.params, datetime.now(UTC)
    try:
        count, wrong = (
            damaged(Path(given["store"]), Path(given["cache"]), verify=given["verify"], read_only=module.check_mode)
            if given["store"]
            else (0, [])
        )
        disks = [str(usage) for usage in usages(ROOT)]
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        reboot_reasons=reboot_reasons(ROOT),
        driver=has_driver(),
        disks=disks,
        certificates=[
            asdict(certificate(path, now, given["warn_days"], given["fail_days"])) for path in given["certificates"]
        ],
        damaged=wrong,
        models=count,
    )


if __name__ == "__main__":
    main()
