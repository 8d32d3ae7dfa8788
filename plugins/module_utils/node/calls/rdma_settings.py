# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module rdma_settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import commands, files
from ...core.call import Call
from ...core.paths import Paths
from ...core.problems import Findings
from ...engine.state import drains
from ...hardware.rdma_settings import addresses, boot, desired, machine, units, written
from ...hardware.rdma_settings.apply import Run
from ...hardware.rdma_settings.plan import Plan, plan

ROOT = Path("/")

DEVICE_SECONDS = 60.0
"""How long the devices of rails may take to appear after a boot."""


def refusal(findings: Findings) -> str:
    """The message with all mistakes; empty without any."""
    if not findings.problems:
        return ""
    return "\n- ".join(["rdma_settings: nothing was changed.", *map(str, findings.problems)])


def run(module: Call) -> None:
    """Answer a call."""
    params, paths = module.params, Paths(ROOT)
    if not params["timeout"] > 0:
        module.fail_json(msg=f"timeout: {params['timeout']:g}: must be more than 0 seconds")

    def ask(command: Sequence[str]) -> commands.Outcome:
        return commands.run(command, params["timeout"])

    if params["recorded"]:
        recorded(module, paths, ask)
    try:
        stored = files.read_json(paths.rdma_settings)
    except ValueError:
        # A damaged file is replaced.
        stored = None
    except OSError as error:
        module.fail_json(msg=f"rdma_settings: {error}")
    try:
        facts = boot.gather(ROOT, ask)
        peers = addresses.of_peers(params["peers"])
        found = machine.read(ROOT, facts, params["address"], peers, desired.keys(stored), ask)
        planned, findings = plan(params["settings"], found)
        if message := refusal(findings):
            module.fail_json(msg=message)
        for warning in findings.warnings:
            module.warn(str(warning))
        module.exit_json(**outcome(module, paths, planned, stored, facts, ask))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"rdma_settings: {error}")


def recorded(module: Call, paths: Paths, run: Run) -> None:
    """Make the settings that the last run has recorded. Ends the module."""
    try:
        wanted = boot.read(paths)
        if wanted is None:
            module.exit_json(changed=False, due=False, **plain(boot.Report(), []))
        facts = boot.wait_for_devices(paths.root, wanted, run, 0 if module.check_mode else DEVICE_SECONDS)
        with boot.alone(paths, module.check_mode) as stale:
            if stale:
                facts = boot.gather(paths.root, run)
            drained, now = module.params["drained"], datetime.now(UTC)
            busy = machine.serving(run, lambda name: name in drained or drains.is_drained(paths, name, now))
            report = boot.settle(paths.root, wanted, facts, run, bool(busy), module.check_mode)
            if not module.check_mode:
                boot.record_waiting(paths, report)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"rdma_settings: {error}")
    found = plain(report, busy)
    failures = [*report.failures]
    if not module.check_mode:
        failures += boot.absent(wanted, report)
    if report.pending and not module.check_mode:
        failures += [f"{change}: waits for {', '.join(busy)}; drain the node" for change in report.pending]
    if failures:
        module.fail_json(msg="\n- ".join(["rdma_settings: not everything was set.", *failures]), **found)
    diff = written.diff_of_settings(report.changes)
    module.exit_json(changed=bool(report.changes), due=bool(report.changes), diff=diff, **found)


def plain(report: boot.Report, busy: Sequence[str]) -> dict[str, Any]:
    """The contents of a report as plain values, for the module's result."""
    return {
        "changes": [str(change) for change in report.changes],
        "pending": [str(change) for change in report.pending],
        "change_pending": bool(report.pending),
        "serving": list(busy) if report.pending else [],
        "unknown": report.unknown,
        "failures": report.failures,
    }


def outcome(module: Call, paths: Paths, planned: Plan, stored: Any, facts: dict[str, Any], run: Run) -> dict[str, Any]:
    """Carry out the plan, and return the module's result. Fails the module if a setting could not be made."""
    check = module.check_mode
    texts = {}
    if planned.desired.rails:
        record = f"/{paths.rdma_settings.relative_to(paths.root)}"
        texts = {**planned.texts, record: files.to_json(planned.desired.as_dict()), **units.texts(paths)}
    altered = written.differing(paths.root, texts, stored)
    diff = written.diff(altered)
    if not check:
        written.write(paths.root, altered, run)
    lacking = machine.lacking(paths.root, module.params["packages"])
    with boot.alone(paths, check) as stale:
        if stale:
            facts = boot.gather(paths.root, run)
        now = datetime.now(UTC)
        busy = machine.serving(run, lambda name: drains.is_drained(paths, name, now))
        report = boot.settle(paths.root, planned.desired, facts, run, bool(busy), check)
        if not check:
            boot.record_waiting(paths, report)
    for line in report.unknown:
        module.warn(f"rdma_settings: cannot be set: {line}")
    result = {
        "changed": bool(altered or report.changes),
        "due": bool(altered or report.changes or lacking),
        "missing_packages": lacking,
        "rails": [port.name for port in planned.ports],
        "desired": planned.desired.as_dict() if planned.desired.rails else {},
        "files": sorted(altered),
        "gpudirect": planned.gpudirect,
        "gpudirect_reason": planned.gpudirect_reason,
        **plain(report, busy),
        "diff": [*diff, *written.diff_of_settings(report.changes)],
    }
    if report.failures:
        module.fail_json(msg="\n- ".join(["rdma_settings: not everything was set.", *report.failures]), **result)
    return result
