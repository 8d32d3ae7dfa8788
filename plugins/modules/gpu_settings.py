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
  - Compares what C(nvidia-smi) tells of each card with what is wanted, and changes only what differs. What is not
    named is left alone.
  - Before anything is changed, everything that no card would take is named, all at once - a limit out of the card's
    range, ECC or MIG on a card that has none, an unknown MIG profile with those that there are, a card that is in use
    and would have to be cut anew.
  - Every value that can be read is read back, for C(nvidia-smi) often says that something is not supported, and ends
    with success. A card that fails does not keep the others from being set; the module then fails and names it.
  - Leaves word for C(inferctl gpu-settings), which sets the cards at boot, for they forget most of this with their
    driver.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where the driver does not answer, only the mistakes that need no card are found. RV(unanswered) says so.
      - Takes for granted that a card switches MIG mode at once, which those before Hopper may refuse.
  diff_mode:
    support: full
notes:
  - No driver tells to which clocks a card is locked. They are remembered in C(/run/inference/gpu-clocks.json) until the
    driver is loaded anew; after a C(nvidia-smi --gpu-reset) run C(inferctl gpu-settings).
options:
  settings:
    description: What all GPUs of the node have. Nothing where nothing is given.
    type: dict
    suboptions: &settings
      persistence_mode:
        description: Keep the driver running while nothing uses the card, as C(nvidia-persistenced) does.
        type: bool
      power_limit_w:
        description: Power limit in W. V(0) is the card's default.
        type: float
      gpu_clocks_mhz:
        description: Lock the GPU's clocks between these two frequencies in MHz, or to one. An empty list unlocks them.
        type: list
        elements: int
      memory_clocks_mhz:
        description: The same for the memory's clocks, which the driver rounds to what the card has.
        type: list
        elements: int
      ecc:
        description: Error correction of the memory. Takes a reset of the card, or a reboot.
        type: bool
      mig_mode:
        description: Whether the card can be cut into MIG devices. Switched only while nothing uses the card.
        type: bool
      mig_devices:
        description:
          - The profiles of its MIG devices, such as V(3g.40gb), in any order; each becomes a GPU instance with one
            compute instance. An empty list leaves none. Needs C(mig_mode).
          - Where they differ, all of the card's are made anew, only while nothing uses the card.
        type: list
        elements: str
      compute_mode:
        description: Who may use the card, V(default) for any number of processes. In MIG mode it is always that.
        type: str
        choices: [default, exclusive_process, prohibited]
  overrides:
    description: What single GPUs have in place of that.
    type: list
    elements: dict
    default: []
    suboptions:
      <<: *settings
      gpu:
        description: Index, UUID or PCI address.
        type: str
        required: true
  apply:
    description: Whether to set the cards now. V(false) only leaves word for the next boot, as for a driver that works
      only then.
    type: bool
    default: true
  nvidia_smi:
    description: The program to run, a name to find in the search path or a path.
    type: str
    default: nvidia-smi
  timeout:
    description: Seconds for each call. A card that is reset for MIG mode takes some ten.
    type: float
    default: 60
"""

EXAMPLES = r"""
- name: Let all GPUs draw 500 W, and cut one of them
  baremetal.inference.gpu_settings:
    settings:
      power_limit_w: 500
    overrides:
      - gpu: 0000:1b:00.0
        mig_mode: true
        mig_devices: [3g.40gb, 3g.40gb]

- name: See what would change
  baremetal.inference.gpu_settings:
    settings:
      gpu_clocks_mhz: [210, 1600]
      ecc: true
  check_mode: true
"""

RETURN = r"""
changes:
  description: What was changed, or would be in check mode. There also where the module fails in the midst of it.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: The card's index.
      type: int
    pci_bus_id:
      description: Its PCI address.
      type: str
    setting:
      description: Name of the setting.
      type: str
      sample: power_limit_w
    before:
      description: The value before; V(null) where it is unknown.
      type: raw
    after:
      description: The value wanted.
      type: raw
pending:
  description: What is set, and waits for a reset of the card.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: The card's index.
      type: int
    pci_bus_id:
      description: Its PCI address.
      type: str
    setting:
      description: V(ecc) or V(mig_mode).
      type: str
    now:
      description: What is in force.
      type: bool
    wanted:
      description: What will be.
      type: bool
failures:
  description: What a card did not take, with the words of C(nvidia-smi). On success there is none.
  returned: always
  type: list
  elements: str
reboot_required:
  description: Whether something waits for a reset of a card.
  returned: always
  type: bool
reboot_reason:
  description: What waits, as a text; empty for nothing.
  returned: always
  type: str
unanswered:
  description: Why the driver does not list the GPUs, in check mode; empty where it does, and where it was not asked.
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
    """What was done, or would be, and why the driver does not answer. Raises InputError, OSError, NoAnswer."""
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
    """Before and after of the cards, and of the file for the next boot."""
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
        # Also after a failure of one card: at boot the others are set all the same.
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
