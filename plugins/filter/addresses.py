# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter for the addresses of inventory hosts.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def host_addresses(hosts: Iterable[str], hostvars: Mapping[str, Any], required: bool = True) -> list[str]:
    """The addresses of hosts. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.core import addresses

    if isinstance(hosts, str):
        raise AnsibleFilterError(f"host_addresses: expected a list of host names, found {hosts!r}")
    try:
        return addresses.host_addresses(hosts, hostvars, required=required)
    except addresses.AddressError as error:
        raise AnsibleFilterError(f"host_addresses: {error}") from error


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"host_addresses": host_addresses}
