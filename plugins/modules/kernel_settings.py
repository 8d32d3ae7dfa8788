#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Kept because: ansible.posix.sysctl needs a task per key (40 ms CPU each), reads no value back and puts none back.

DOCUMENTATION = r"""
module: kernel_settings
short_description: Set values of the running kernel and its boot parameters
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets sysctls, hugepages, the policy for transparent hugepages and the CPU governor, now and at every boot, all in
    one call.
  - Every value is read back. One that the kernel did not take is an error that names what was asked and what was found;
    files and values are then as before.
  - Before anything is changed, every key that does not exist, that cannot be written, or that another file sets to
    another value at boot is named, all at once.
  - A key that is not declared any more leaves the files; its running value stays until the next boot.
  - O(cmdline) is read and changed only where it is given. Of the other options, one is enough to have the values set,
    and those that are left out then count as empty. Where none of them is given, the values and their files stay.
  - O(cmdline) writes C(/etc/default/grub.d/50-inference.cfg), which adds to what other files say, and renews GRUB's
    menu. The new menu is made with another name, checked by GRUB itself, and must hold every parameter before it takes
    the place of the old menu. When anything fails, the old files are put back.
  - Never reboots. RV(missing) names what the running kernel was not started with, RV(surplus) what has just left
    O(cmdline) and the running kernel still has.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Whether the kernel takes a value is only known by trying.
  diff_mode:
    support: full
options:
  sysctl:
    description:
      - Sysctls by name. Several numbers are written with blanks between them.
      - V(null) leaves one alone that O(sysctl_where_present) would set.
    type: dict
  sysctl_where_present:
    description: The same for those that not every kernel has, without IPv6 for one. O(sysctl) wins.
    type: dict
  hugepages:
    description: Number of hugepages by size, V(2M) or V(1G). No more than the memory that is free holds.
    type: dict
  transparent_hugepage:
    description: Policy for transparent hugepages. Empty leaves it alone.
    type: str
    choices: ["", always, madvise, never]
  cpu_governor:
    description: Governor of every CPU. Empty leaves it alone, and so does a machine without frequency scaling.
    type: str
  cmdline:
    description:
      - The parameters of the kernel's command line, in their order; some may be there twice, as in C(hugepagesz=1G
        hugepages=4 hugepagesz=2M hugepages=64). An empty list removes the file.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Reboot a machine that panics
  baremetal.inference.kernel_settings:
    sysctl:
      kernel.panic: 30
    transparent_hugepage: madvise

- name: Let devices of the host bypass the IOMMU's translation
  baremetal.inference.kernel_settings:
    cmdline: [iommu=pt]
"""

RETURN = r"""
differs:
  description:
    - What differed from what is declared, for people. RV(missing) and RV(surplus) count as well, for which a reboot is
      due.
  returned: success
  type: list
  elements: str
set:
  description: The values that were set, or would be in check mode, as C(name) and C(value).
  returned: success
  type: list
  elements: dict
missing:
  description: Parameters that the running kernel was not started with. Empty without O(cmdline).
  returned: success
  type: list
  elements: str
surplus:
  description:
    - Parameters that left O(cmdline) in this call, and that the running kernel was started with. Empty without
      O(cmdline).
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_cmdline as kc
from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_settings as ks

ROOT = Path("/")

EMPTY: dict[str, Any] = {
    "sysctl": {},
    "sysctl_where_present": {},
    "hugepages": {},
    "transparent_hugepage": "",
    "cpu_governor": "",
}
"""The options for the running kernel, as they count where another of them is given."""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sysctl": {"type": "dict"},
            "sysctl_where_present": {"type": "dict"},
            "hugepages": {"type": "dict"},
            "transparent_hugepage": {"type": "str", "choices": ["", "always", "madvise", "never"]},
            "cpu_governor": {"type": "str"},
            "cmdline": {"type": "list", "elements": "str"},
        },
        supports_check_mode=True,
    )
    given = {name: module.params[name] for name in EMPTY if module.params[name] is not None}
    kernel = line = None
    differing: list[ks.Setting] = []
    stale: list[Path] = []
    problems: list[str] = []
    diff: list[dict[str, str]] = []
    changed = False
    try:
        if given:
            params = {**EMPTY, **given}
            kernel = ks.Kernel(ROOT, *ks.settings_of(params, ROOT))
            problems += [*ks.mistakes(params), *kernel.problems()]
        if module.params["cmdline"] is not None:
            line = kc.CommandLine(module.params["cmdline"], kc.Boot(module.get_bin_path, module.run_command))
            problems += line.problems()
        if problems:
            raise ks.KernelError("\n- ".join(["nothing was changed.", *problems]))
        if kernel:
            differing, stale = kernel.differing(), kernel.stale_files()
            changed = bool(differing or stale)
            diff += ks.diff_of(kernel, differing, stale)
            if not module.check_mode:
                kernel.apply()
        if line:
            changed = changed or line.changed
            diff += line.diff()
            if not module.check_mode:
                line.apply()
            if line.against():
                module.warn(
                    f"the command line also says {' '.join(line.against())}, behind common_kernel_cmdline, and of one"
                    " name the kernel takes the last: look into /etc/default/grub and /etc/default/grub.d"
                )
    except (ks.KernelError, kc.BootError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=f"kernel_settings: {error}")
    missing = line.missing() if line else []
    surplus = line.surplus(applied=not module.check_mode) if line else []
    module.exit_json(
        changed=changed,
        differs=[
            *(f"{setting.name} is not {setting.value}" for setting in differing),
            *(f"{path} differs" for path in stale),
            *(["the parameters of the next boot differ"] if line and line.changed else []),
            *(f"the kernel runs without {word}" for word in missing),
            *(f"the kernel runs with {word}" for word in surplus),
        ],
        set=[{"name": setting.name, "value": setting.value} for setting in differing],
        missing=missing,
        surplus=surplus,
        diff=diff,
    )


if __name__ == "__main__":
    main()
