# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for gateways: their engines, their addresses and their files.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError


def gateway_replicas(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    own: str,
    leaving: Mapping[str, Collection[str]] | None = None,
) -> list[dict[str, Any]]:
    """The engines of hosts, as the gateway on host `own` reaches them. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.core.addresses import AddressError
    from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import replicas_of

    try:
        return [asdict(replica) for replica in replicas_of(hosts, hostvars, own, leaving=leaving)]
    except AddressError as error:
        raise AnsibleFilterError(f"gateway_replicas: {error}") from error


def gateway_endpoints(gateways: Iterable[str], hostvars: Mapping[str, Any], own: str) -> list[dict[str, Any]]:
    """The addresses at which node `own` reaches the gateways. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.gateway.endpoints import EndpointError, endpoints

    try:
        return [asdict(endpoint) for endpoint in endpoints(gateways, hostvars, own)]
    except EndpointError as error:
        raise AnsibleFilterError(f"gateway_endpoints: {error}") from error


def gateway_plan(
    settings: Mapping[str, Any],
    replicas: Iterable[Mapping[str, Any]],
    keys: Iterable[Any],
    models: Iterable[str] = (),
    floating: Mapping[str, Any] | None = None,
    tls: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The files of HAProxy and keepalived, or every mistake."""
    from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
    from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import plan

    made = plan(settings, map(Replica.from_dict, replicas), keys, models, floating, tls)
    texts = {"problems": made.problems, "warnings": made.warnings}
    return {**asdict(made), **{key: list(map(str, found)) for key, found in texts.items()}}


def gateway_tls(given: Mapping[str, Any]) -> dict[str, Any]:
    """Where the gateway's certificate comes from, and the names in it."""
    from ansible_collections.baremetal.inference.plugins.module_utils.gateway.forms import resolve

    return resolve(given)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "gateway_endpoints": gateway_endpoints,
            "gateway_plan": gateway_plan,
            "gateway_replicas": gateway_replicas,
            "gateway_tls": gateway_tls,
        }
