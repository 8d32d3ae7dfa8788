# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that returns defaults that several roles share.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def site_default(variable: str) -> int | float | str:
    """The default of a role's variable. Raises AnsibleFilterError for a variable without a shared default."""
    from ansible_collections.baremetal.inference.plugins.module_utils.core.defaults import BY_VARIABLE

    if variable not in BY_VARIABLE:
        raise AnsibleFilterError(
            f"site_default: {variable!r} has no shared default; known: {', '.join(sorted(BY_VARIABLE))}"
        )
    return BY_VARIABLE[variable]


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"site_default": site_default}
