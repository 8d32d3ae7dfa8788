# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_swap."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.call import Call
from ...core.paths import Paths
from ...engine import swap_settings
from ...engine.state import drains, releases, swaps
from ..swap import left_over, request
from ..swap.request import Progress, Request

UNKNOWN = "unknown"


def begin(paths: Paths, given: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """Start a swap. Raises Refused, NoSettings, ReleaseError, SystemdError, OSError, ValueError."""
    terms, name = swap_settings.read(paths).terms, given["name"]
    asked = {key: value for key, value in given["terms"].items() if value is not None}
    wanted = Request(
        name=name,
        release=given["release"],
        run_id=given["run_id"],
        reason=given["reason"],
        back=given["back"],
        pin=given["pin"],
        terms=replace(terms, **asked),
        counted=given["counted"],
    )
    begun = {"ended": False, "outcome": "", "line": "", "failure": "", "permission": ""}
    found = swaps.read(paths, name)
    known = found is not None and found.step != swaps.DAMAGED
    if found and known and found.target == wanted.release and not found.returning and request.runs(name):
        # Another run has begun this swap, and may have been killed: the node continues the swap, and this run waits.
        return {"changed": False, "run_id": found.run_id, **begun}
    if request.begin(paths, wanted, check=check):
        return {"changed": True, "run_id": wanted.run_id, **begun}
    # No swap is due. A run that was cut off before its swap may have left a drain: remove it.
    now = datetime.now(UTC)
    drain = drains.read(paths, name, now)
    left = drain is not None and drain.owner == drains.UPDATE
    if left and not check:
        drains.undrain(paths, name, drains.UPDATE, now)
    line = f"{name} already serves release {given['release']}"
    return {"changed": left, "run_id": wanted.run_id, **begun, "ended": True, "outcome": swaps.DONE, "line": line}


def wait(paths: Paths, given: dict[str, Any]) -> dict[str, Any]:
    """Wait up to `seconds` for the end of a swap, and return its progress. Raises SystemdError."""
    name, node = given["name"], _node_name(paths)
    found = request.awaited(paths, name, given["run_id"], given["seconds"])
    done = found.outcome == swaps.DONE
    # A swap that does not run, or has left no report, is not known to be stuck.
    known = found.outcome != request.STUCK or found.step == swaps.STUCK
    return {
        "changed": False,
        "ended": bool(found.outcome),
        "outcome": found.outcome if known else UNKNOWN,
        "step": found.step,
        "words": list(found.words),
        "line": request.line(found.report, name, node) if done and found.report else "",
        "failure": _left_open(found, name, node) if done else _failure(found, name),
        "permission": found.permission,
        "msg": "" if found.outcome else f"{name}: {found.step}",
    }


def _node_name(paths: Paths) -> str:
    """The node's name in the inventory; its host name if the settings of swaps cannot be read."""
    try:
        return swap_settings.read(paths).node
    except swap_settings.NoSettings:
        return socket.gethostname()


def _left_open(found: Progress, name: str, node: str) -> str:
    """Why no other swap may follow a finished one; empty if another may follow."""
    report = found.report
    words = []
    if report and report.unheard:
        # The release has proved itself, so it stays. A return would need a drain that every gateway confirms.
        silent, sends = ", ".join(report.unheard), "sends" if len(report.unheard) == 1 else "send"
        words.append(
            f"cannot tell whether {silent} {sends} requests to {name} on {node}, because {silent} cannot be reached, or"
            f" HAProxy there does not answer. {name} stays with release {report.target}"
        )
    return ". ".join([*words, *(left_over.words(report, name) if report else [])])


def _failure(found: Progress, name: str) -> str:
    """Why a swap failed, and what it has left on the node."""
    return ". ".join([found.failure, *(left_over.words(found.report, name) if found.report else [])])


def run(module: Call) -> None:
    """Answer a call."""
    given, paths = module.params, Paths()
    try:
        result = wait(paths, given) if given["state"] == "awaited" else begin(paths, given, check=module.check_mode)
    except (
        request.Refused,
        swap_settings.NoSettings,
        releases.ReleaseError,
        systemd.SystemdError,
        OSError,
        ValueError,
    ) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)
