#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_settings
short_description: Set power limit, clocks, ECC, MIG and compute mode of NVIDIA GPUs, now and at every boot
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Compares the state of each GPU, from C(nvidia-smi), with the declared settings, and changes only differences.
    Settings that are not declared stay unchanged.
  - Before any change, reports all settings that a GPU does not support. Examples are a limit out of the GPU's range,
    ECC or MIG on a GPU without it, an unknown MIG profile, or new MIG devices on a GPU in use.
  - Reads values back after setting them, because C(nvidia-smi) often ends with success although a setting is not
    supported. If one GPU fails, the other GPUs are set all the same, and the module fails with the GPU's name.
  - Records the settings for C(inferctl gpu-settings), which sets the GPUs at boot, because most settings are lost when
    the driver is unloaded.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If the driver does not answer, only mistakes that need no GPU are found, and RV(unanswered) gives the reason.
      - Assumes that a GPU switches MIG mode at once. GPUs before Hopper may refuse this.
  diff_mode:
    support: full
notes:
  - No driver reports the locked clocks of a GPU. The module records them in C(/run/inference/gpu-clocks.json), valid
    until the driver is loaded again. After C(nvidia-smi --gpu-reset), run C(inferctl gpu-settings).
options:
  settings:
    description: The settings of all GPUs of the node.
    type: dict
    suboptions: &settings
      persistence_mode:
        description: Keep the driver loaded while nothing uses the GPU, as C(nvidia-persistenced) does.
        type: bool
      power_limit_w:
        description: Power limit in W. V(0) is the GPU's default.
        type: float
      gpu_clocks_mhz:
        description: Lock the GPU's clocks between these two frequencies in MHz, or to one. An empty list unlocks them.
        type: list
        elements: int
      memory_clocks_mhz:
        description: Lock the memory's clocks in the same way. The driver rounds them to clocks of the GPU.
        type: list
        elements: int
      ecc:
        description: Error correction of the memory. A change needs a reset of the GPU, or a reboot.
        type: bool
      mig_mode:
        description: Whether the GPU can be split into MIG devices. Only changed while nothing uses the GPU.
        type: bool
      mig_devices:
        description:
          - The profiles of the MIG devices, such as V(3g.40gb), in any order. Each becomes a GPU instance with one
            compute instance. An empty list removes all. Needs C(mig_mode).
          - If they differ, all MIG devices of the GPU are created again, only while nothing uses the GPU.
        type: list
        elements: str
      compute_mode:
        description: The compute mode; V(default) allows any number of processes. In MIG mode it is always V(default).
        type: str
        choices: [default, exclusive_process, prohibited]
  overrides:
    description: Settings of single GPUs, which override O(settings).
    type: list
    elements: dict
    default: []
    suboptions:
      <<: *settings
      gpu:
        description: The GPU, by index, UUID or PCI address.
        type: str
        required: true
  apply:
    description: Whether to set the GPUs now. V(false) only records the settings for the next boot, for a driver that
      needs a reboot first.
    type: bool
    default: true
  nvidia_smi:
    description: The program to run, as a path or as a name in the search path.
    type: str
    default: nvidia-smi
  timeout:
    description: Time limit of each call, in seconds. A reset for MIG mode takes about ten seconds.
    type: float
    default: 60
"""

EXAMPLES = r"""
- name: Limit all GPUs to 500 W, and split one into MIG devices
  baremetal.inference.gpu_settings:
    settings:
      power_limit_w: 500
    overrides:
      - gpu: 0000:1b:00.0
        mig_mode: true
        mig_devices: [3g.40gb, 3g.40gb]

- name: Report what would change
  baremetal.inference.gpu_settings:
    settings:
      gpu_clocks_mhz: [210, 1600]
      ecc: true
  check_mode: true
"""

RETURN = r"""
changes:
  description: The changes, or in check mode the changes to come. Also returned if the module fails after some changes.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: The GPU's index.
      type: int
    pci_bus_id:
      description: The GPU's PCI address.
      type: str
    setting:
      description: The name of the setting.
      type: str
      sample: power_limit_w
    before:
      description: The value before; V(null) if unknown.
      type: raw
    after:
      description: The declared value.
      type: raw
pending:
  description: Settings that take effect at the next reset of the GPU.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: The GPU's index.
      type: int
    pci_bus_id:
      description: The GPU's PCI address.
      type: str
    setting:
      description: V(ecc) or V(mig_mode).
      type: str
    now:
      description: The value in force.
      type: bool
    wanted:
      description: The value after the reset.
      type: bool
failures:
  description: Settings that a GPU refused, with the message of C(nvidia-smi). Empty on success.
  returned: always
  type: list
  elements: str
reboot_required:
  description: Whether a setting waits for a reset of a GPU.
  returned: always
  type: bool
reboot_reason:
  description: The settings that wait for a reset, as a text; empty for none.
  returned: always
  type: str
unanswered:
  description: In check mode, why the driver does not list the GPUs; empty if it does, or if it was not needed.
  returned: always
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import (
    NoAnswer,
    Result,
    Setter,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.changes import shown
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.clocks import Clocks, loading
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import (
    COMPUTE_MODES,
    Wanted,
)

ROOT = Path("/")

SETTINGS: dict[str, dict[str, Any]] = {
    "persistence_mode": {"type": "bool"},
    "power_limit_w": {"type": "float"},
    "gpu_clocks_mhz": {"type": "list", "elements": "int"},
    "memory_clocks_mhz": {"type": "list", "elements": "int"},
    "ecc": {"type": "bool"},
    "mig_mode": {"type": "bool"},
    "mig_devices": {"type": "list", "elements": "str"},
    "compute_mode": {"type": "str", "choices": list(COMPUTE_MODES)},
}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "settings": {"type": "dict", "options": SETTINGS},
    "overrides": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"gpu": {"type": "str", "required": True}, **SETTINGS},
    },
    "apply": {"type": "bool", "default": True},
    "nvidia_smi": {"type": "str", "default": "nvidia-smi"},
    "timeout": {"type": "float", "default": 60},
}


def set_cards(setter: Setter, clocks: Clocks, check: bool) -> tuple[Result, str]:
    """The changes, and why the driver does not answer (in check mode). Raises InputError, OSError, NoAnswer."""
    if not check:
        try:
            return setter.apply(), ""
        finally:
            clocks.write()
    try:
        return setter.foresee(), ""
    except NoAnswer as error:
        return Result(), str(error)


def diff_of(result: Result, file: Path, before: str, after: str) -> list[dict[str, str]]:
    """The diff of the GPUs, and of the file for the next boot."""
    cards = [(f"{one.card.name}: {one.setting}", shown(one.before), shown(one.after)) for one in result.changes]
    sides = [
        ("GPUs", *("".join(f"{line[0]} = {line[side]}\n" for line in cards) for side in (1, 2))),
        (str(file), before, after),
    ]
    return [
        {"before_header": name, "after_header": name, "before": old, "after": new}
        for name, old, new in sides
        if old != new
    ]


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params, paths = module.params, Paths(ROOT)
    if not params["timeout"] > 0:
        module.fail_json(msg=f"timeout: {params['timeout']:g}: must be more than 0 seconds")
    wanted = Wanted.of(params["settings"] or {}, params["overrides"])
    result, unanswered = Result(), ""
    try:
        if problems := wanted.problems():
            raise InputError(problems)
        text = boot.as_text(wanted, params["nvidia_smi"], params["timeout"])
        before = files.text(paths.gpu_settings) or ""
        if wanted and params["apply"]:
            clocks = Clocks.read(paths.gpu_clocks, loading(ROOT))
            setter = Setter(boot.runner(params["nvidia_smi"], params["timeout"]), clocks, wanted)
            result, unanswered = set_cards(setter, clocks, module.check_mode)
        stale = not (files.same(paths.gpu_settings, text) if text else not before)
        # Also after a failure of one GPU: the boot then sets the other GPUs.
        if stale and not module.check_mode:
            files.write(paths.gpu_settings, text)
    except InputError as error:
        module.fail_json(
            msg="\n- ".join(["gpu_settings: nothing was changed.", *map(str, error.problems)]),
            **Result().as_dict(),
            unanswered=unanswered,
        )
    except (NoAnswer, OSError) as error:
        module.fail_json(msg=f"gpu_settings: {error}", **result.as_dict(), unanswered=unanswered)
    outcome = {
        **result.as_dict(),
        "changed": bool(result.changes or stale),
        "unanswered": unanswered,
        "diff": diff_of(result, paths.gpu_settings, before, text or ""),
    }
    if result.failures:
        module.fail_json(msg="\n- ".join(["gpu_settings: not everything was set.", *result.failures]), **outcome)
    module.exit_json(**outcome)


if __name__ == "__main__":
    main()
