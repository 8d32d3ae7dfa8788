# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module node_facts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.call import Call
from ...core.gather_subset import chosen
from ...core.paths import Paths
from ...core.systemd import SystemdError
from ...maintenance import facts
from .. import in_use, left, overview
from ..doctor import catalogue, check
from ..doctor.host import Host

PARTS = ("doctor", "status", "maintenance", "left", "in_use")

FAILING = {"never": (), "warn": (check.WARN, check.FAIL), "fail": (check.FAIL,)}


def doctor(paths: Paths, names: list[str]) -> dict[str, Any]:
    """The subset `doctor`. Raises OSError, ValueError."""
    settings = catalogue.read(paths)
    results = check.run(catalogue.chosen(names, settings.off), Host(paths, thresholds=settings.thresholds))
    found = {**check.as_json(results), "problems": check.problems(results, actions=True)}
    del found["schema"]
    return found


def maintenance(paths: Paths, params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    """The subset `maintenance`. Raises OSError."""
    root = paths.root
    count, wrong = 0, list[str]()
    if params["store"]:
        store, cache = Path(params["store"]), Path(params["store_cache"])
        count, wrong = facts.damaged(store, cache, verify=params["store_verify"], read_only=check_mode)
    return {
        "reboot_reasons": facts.reboot_reasons(root),
        "driver": facts.has_driver(),
        "rails_due": facts.rails(paths),
        "disks": [str(usage) for usage in facts.usages(root)],
        "certificates": facts.certificates(
            params["certificates"],
            datetime.now(UTC),
            params["certificate_warn_days"],
            params["certificate_fail_days"],
        ),
        "damaged": wrong,
        "models": count,
    }


def run(module: Call) -> None:
    """Answer a call."""
    params, paths = module.params, Paths()
    parts = chosen(params["gather_subset"], PARTS)
    unknown = catalogue.unknown(params["checks"])
    if unknown:
        module.fail_json(msg="; ".join(unknown))
    found: dict[str, Any] = {}
    try:
        if "maintenance" in parts:
            found |= maintenance(paths, params, check_mode=module.check_mode)
        if "status" in parts:
            found |= overview.gather(Host(paths, thresholds=catalogue.thresholds(paths)), datetime.now(UTC))
        if "doctor" in parts:
            found |= doctor(paths, params["checks"])
        if "left" in parts:
            found |= left.gather()
        if "in_use" in parts:
            found["in_use"] = in_use.gather(paths)
    except (SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    if found.get("verdict") in FAILING[params["fail_on"]]:
        what = "is not fit to serve" if found["verdict"] == check.FAIL else "has warnings"
        module.fail_json(msg=f"The node {what}: {'; '.join(found['problems'])}", **found)
    module.exit_json(changed=False, **found)
