# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that finds weak secrets.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def weak_secrets(hostvars: Mapping[str, Any], host: str) -> list[str]:
    """A line for each weak secret of a host, without the secret."""
    from ansible_collections.baremetal.inference.plugins.module_utils.core import secrets

    variables = hostvars[host]
    lines = secrets.weak({name: variables[name] for name in (*secrets.OWN, *secrets.OTHERS) if name in variables})
    return [f"{host}: {line}" for line in lines]


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"weak_secrets": weak_secrets}
