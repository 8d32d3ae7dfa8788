# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that write an inventory for bare machines.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def discovery(results: Mapping[str, Mapping[str, Any]], out: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The files to write below `out`, and the report. Raises OSError, and ValueError if the inventory is no YAML."""
    from pathlib import Path

    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover import answers, changes, drivers
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.inventory import Options, discover
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.layout import Wanted

    options = answers.harmless(options)
    machines = {name: answers.read(result) for name, result in answers.harmless(results).items()}
    logins = [one["login"] for one in machines.values() if one["login"]]
    model, cuda = str(options.get("serve") or ""), str(options.get("cuda") or "")
    wanted = None
    if model:
        facts, error = options.get("facts"), str(options.get("error") or "")
        wanted = Wanted(model, str(options.get("revision") or ""), facts or None, error, cuda)
    place = Path(out)
    known = (place / "hosts.yml").exists()
    named = changes.hosts(place / "hosts.yml") if known else {}
    found = discover(
        machines,
        Options(
            login=max(logins, key=logins.count, default=""),
            wanted=wanted,
            image=str(options.get("image") or ""),
            cuda=cuda,
            month=str(options.get("month") or ""),
            names={**{address: name for name, address in named.items()}, **{name: name for name in named}},
        ),
    )
    text = "".join(found.files.values())
    return {
        "files": changes.missing(place, found, again=bool(options.get("record"))),
        "keys": {name: url for name, url in drivers.KEY_URLS.items() if f"/keys/{name}" in text} if not known else {},
        "lines": found.lines,
        "questions": [str(question) for question in found.questions] if not known else [],
        "changes": changes.compare(place, found) if known else [],
        "known": known,
    }


def discovery_vault(size: int) -> str:
    """A file with new secrets, each of `size` random bytes."""
    import secrets

    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.inventory import vault

    return vault(lambda: secrets.token_hex(size))


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"discovery": discovery, "discovery_vault": discovery_vault}
