# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that chooses the driver of a node.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def nvidia_driver_plan(
    wish: Mapping[str, Any],
    facts: Mapping[str, Any],
    gpus: Iterable[Mapping[str, Any]] = (),
    nvswitch: bool = False,
    month: str = "",
) -> dict[str, Any]:
    """The driver for a node, and every problem. `wish`: the settings; `facts`: from the module nvidia_driver_facts."""
    from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
    from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load
    from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import decide
    from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed

    node = Node(
        debian=facts["debian"],
        gpus=list(gpus),
        nvswitch=nvswitch,
        packages=facts["packages"],
        kernels=[kernel["release"] for kernel in facts["kernels"]],
        secure_boot=facts["secure_boot"]["enabled"],
        runfile=Installed(**facts["runfile"]) if facts["runfile"] else None,
        month=month,
    )
    return decide(Wish(**wish), node, load()).as_dict()


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_driver_plan": nvidia_driver_plan}
