# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for instances over several nodes.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def node_instances(instances: Sequence[Any], node: str) -> list[Any]:
    """The instances that run on a node."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.node_instances(instances, node)


def gang_site(
    instances: Sequence[Any],
    hostvars: Mapping[str, Any],
    group: Sequence[str],
    node: str,
    sysctl: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the members of a node's gangs declare; empty where the node has no gang. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import site

    try:
        return site.collect(instances, hostvars, group, node, sysctl)
    except ValueError as error:
        raise AnsibleFilterError(f"gang_site: {error}") from error


def gang_rules(gangs: Mapping[str, Any], instances: Sequence[Any]) -> list[dict[str, Any]]:
    """The firewall's rules of a node for its gangs. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import site

    try:
        return site.rules(instances, site.Site.from_dict(gangs))
    except ValueError as error:
        raise AnsibleFilterError(f"gang_rules: {error}") from error


def gang_engine_rules(gangs: Mapping[str, Any], instances: Sequence[Any]) -> list[dict[str, Any]]:
    """The connections that engines of a node's gangs open. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import site

    try:
        return site.engine_rules(instances, site.Site.from_dict(gangs))
    except ValueError as error:
        raise AnsibleFilterError(f"gang_engine_rules: {error}") from error


def gang_differences(reports: Sequence[Mapping[str, Any]], node: str) -> list[str]:
    """The differences between a node and the other members of its gangs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import compare

    return compare.differences(reports, node)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "gang_differences": gang_differences,
            "gang_engine_rules": gang_engine_rules,
            "gang_rules": gang_rules,
            "gang_site": gang_site,
            "node_instances": node_instances,
        }
