# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of a maintenance, in words for the operator. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEAST: Mapping[str, int] = {
    "maintenance_journal_max_mib": 0,
    "maintenance_journal_max_days": 0,
    "maintenance_keep_models": 1,
    "maintenance_keep_releases": 0,
}
"""The least values of variables."""

UPDATES = ("security", "all", "none")
"""The values of `maintenance_updates`."""


def mistakes(settings: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """A text for each setting that is not allowed. `settings`: the role's variables; `known`: the parts of the work."""
    parts = settings["maintenance_parts"]
    found = []
    if not parts or set(parts) - set(known):
        chosen = ", ".join(parts) or "none"
        found.append(f"the parts, chosen by --tags and --skip-tags, must be of {', '.join(known)} (found {chosen})")
    if (updates := settings["maintenance_updates"]) not in UPDATES:
        found.append(f"maintenance_updates must be one of {', '.join(UPDATES)} (found {updates})")
    fail, warn = settings["maintenance_certificate_fail_days"], settings["maintenance_certificate_warn_days"]
    if int(fail) > int(warn):
        found.append(f"maintenance_certificate_fail_days ({fail}) exceeds maintenance_certificate_warn_days ({warn})")
    found += [
        f"{name} must be {least} or more (found {settings[name]})"
        for name, least in LEAST.items()
        if int(settings[name]) < least
    ]
    return found


def failure(host: str, failed: Sequence[str], state: str, left_out: Sequence[str]) -> str:
    """Why a maintenance has stopped, for a host. `state`: what became of the host; `failed`: the hosts that failed."""
    lines = [
        f"baremetal.inference.maintenance stopped: it failed on {', '.join(failed)}.",
        f"{host} {state}",
        *([f"{', '.join(left_out)} could not be reached when the run began."] if left_out else []),
        "Remove the cause, and run baremetal.inference.maintenance again: it continues with the nodes that are not"
        " done.",
    ]
    return "\n".join(lines)


def unsound(facts: Mapping[str, Any]) -> str:
    """The certificates that expire soon and the damaged models of a node; empty if there are none.

    `facts`: the subset `maintenance` of node_facts.
    """
    expire = [f"{each['path']} {each['words']}" for each in facts["certificates"] if each["status"] == "fail"]
    found = [*expire, *facts["damaged"]]
    if not found:
        return ""
    return (
        f"a certificate expires soon, or a model is damaged: {'; '.join(found)}. Renew the certificate. Run"
        " baremetal.inference.site, which copies a damaged model anew."
    )
