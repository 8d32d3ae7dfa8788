# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_facts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.call import Call
from ...core.docker_api import Docker
from ...core.gather_subset import chosen
from ...core.paths import Paths
from ...engine import bridges
from ...engine.inventory import bridged_instance
from ...engine.probe import throughput
from ...engine.state import install_state, releases
from ...engine.update_facts import Facts

INSTANCES = "instances"
UPDATE = "update"
COUNTERS = "counters"
SUBSETS = (INSTANCES, UPDATE, COUNTERS)


def gather(module: Call, paths: Paths) -> dict[str, Any]:
    """The requested subsets of facts. Raises ReleaseError, SystemdError, OSError, ValueError."""
    given, now = module.params, datetime.now(UTC)
    subset = chosen(given["gather_subset"], SUBSETS)
    names = bridges.instances(paths) if given["names"] is None else given["names"]
    found: dict[str, Any] = {}
    if INSTANCES in subset:
        found["instances"] = [install_state.of(paths, name, now).to_dict() for name in bridges.instances(paths)]
        found["bridges"] = [bridged for name in releases.names(paths) if (bridged := bridged_instance(name))]
    if UPDATE in subset:
        facts = Facts(paths, Docker(), given, now, module.check_mode)
        found["updates"] = [facts.of(name).to_dict() for name in names]
    if COUNTERS in subset:
        counted = {name: throughput.read(paths, name) for name in names}
        found["counters"] = {name: asdict(counters) if counters else {} for name, counters in counted.items()}
    return found


def run(module: Call) -> None:
    """Answer a call."""
    try:
        found = gather(module, Paths())
    except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found)
