# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module gang_facts."""

from __future__ import annotations

from pathlib import Path

from ...core.call import Call
from ...core.paths import Paths
from ...engine.gang import network
from ...hardware.rdma import facts as rdma_facts
from ...hardware.rdma_settings import boot, desired, nccl
from ...hardware.rdma_settings.desired import Desired

ROOT = Path("/")

PARTS = (rdma_facts.GIDS, rdma_facts.ADDRESSES, rdma_facts.TOOLS)
"""The facts that NCCL's environment depends on."""


def planned(module: Call, paths: Paths) -> Desired | None:
    """The settings of the rails that this run will make, or else those that the last run recorded; None without any,
    or if the record is damaged.

    Raises OSError, and ValueError for settings of this run that are damaged.
    """
    if module.params["rails"]:
        return desired.of(module.params["rails"], "rails")
    try:
        return boot.read(paths)
    except ValueError as error:
        module.warn(str(error))
        return None


def run(module: Call) -> None:
    """Answer a call."""
    address, paths = module.params["address"], Paths(ROOT)
    try:
        wanted = planned(module, paths)
        facts = boot.gather(paths.root, network.run, PARTS)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"gang_facts: {error}")
    found = nccl.node(facts, wanted, address, network.interface_of(address, network.run))
    module.exit_json(changed=False, network=found.to_dict())
