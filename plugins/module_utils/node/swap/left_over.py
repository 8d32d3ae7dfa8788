# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a swap left undone, although its release serves. Private to the collection."""

from __future__ import annotations

from dataclasses import replace

from ...core.paths import Paths
from ...engine import bridges
from ...engine.inventory import bridge_name
from ...engine.state import gangs, releases, swaps
from ...engine.state.swaps import Report
from . import members


def words(report: Report, name: str) -> list[str]:
    """What a swap left undone, according to its report: one sentence each; empty if nothing."""
    found = []
    if report.kept_bridge:
        found.append(f"{bridge_name(name)} could not be removed ({report.kept_bridge}): the next swap removes it")
    if report.behind:
        found.append(
            f"not all members of {name} have marked the release as proven ({report.behind}): they mark it once the gang"
            " serves with them"
        )
    if report.unproven:
        number = _serving(report)
        again = f"inferctl swap {name} --to {number}"
        found.append(f"release {number} serves, but is not marked as proven ({report.unproven}): {again}")
    return found


def still(paths: Paths, name: str) -> list[str]:
    """What the last swap of an instance left undone, as far as it was not done since. Raises nothing."""
    report = swaps.last(paths, name)
    if report is None or swaps.read(paths, name):
        return []
    kept = report.kept_bridge if bridges.left(paths, name) else ""
    number = releases.active_number(paths, name)
    behind = unproven = ""
    if number is not None and number == _serving(report):
        behind = _behind(paths, name, number) if report.behind else ""
        unproven = "" if releases.proven(paths, name, number) else report.unproven
    return words(replace(report, kept_bridge=kept, behind=behind, unproven=unproven), name)


def _behind(paths: Paths, name: str, number: int) -> str:
    """The followers that have still not marked the leader's release as proven; empty if that is unknown."""
    try:
        gang = releases.load(paths, name, number).gang
    except releases.ReleaseError:
        return ""
    return "; ".join(members.unmarked(gang, gangs.read(paths, name))) if gang else ""


def _serving(report: Report) -> int | None:
    """The release that serves after a swap."""
    return report.target if report.outcome == swaps.DONE else report.origin
