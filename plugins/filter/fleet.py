# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that show the state of a fleet.

Each function imports what it needs itself: usually, each worker process of Ansible loads every file of filters, for
each task. The filter `counted` avoids this in some playbooks, also for the imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

LIBRARY = (
    *("debian.apt_sources", "engine.controller_files", "engine.gang.compare", "engine.gang.site", "engine.served"),
    *("gateway.endpoints", "node.calls.model", "store.settings"),
)
"""What the filters of the site's variables and the controller's own answers import. Otherwise, tasks would compile
these files again for each host."""


def fleet_screen(reported: Mapping[str, Mapping[str, Any]]) -> str:
    """The fleet as lines of text."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet import screen
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import read

    return "\n".join(screen.render(read(reported, datetime.now(UTC))))


def fleet_page(reported: Mapping[str, Mapping[str, Any]]) -> str:
    """The fleet as a page of HTML."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet import page
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import read

    return page.render(read(reported, datetime.now(UTC)))


def counted(things: Sized, noun: str, library: bool = False) -> str:
    """A count as text: "1 node", "8 nodes". The noun must have a regular plural.

    In some playbooks, the name of the first task has this filter. Ansible templates the name before it forks, so
    every worker process finds all filters in memory. Otherwise each task would load the filters for each host.
    With `library`, the workers also find what the filters of the site's variables import.
    """
    if library:
        for name in LIBRARY:
            import_module(f"ansible_collections.baremetal.inference.plugins.module_utils.{name}")
    from ansible_collections.baremetal.inference.plugins.module_utils.core import sizes

    return sizes.counted(len(things), noun)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"fleet_screen": fleet_screen, "fleet_page": fleet_page, "counted": counted}
