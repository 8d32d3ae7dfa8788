# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for monitoring hosts: their targets and their files.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError


def monitoring_targets(
    hostvars: Mapping[str, Any],
    nodes: Iterable[str] = (),
    gateways: Iterable[str] = (),
    monitors: Iterable[str] = (),
    own: str = "",
) -> dict[str, Any]:
    """The targets of the Prometheus on host `own`."""
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.targets import Inventory, targets

    return asdict(targets(Inventory(tuple(nodes), tuple(gateways), tuple(monitors), hostvars), own))


def monitoring_plan(settings: Mapping[str, Any], targets: Mapping[str, Any], shipped: str) -> dict[str, Any]:
    """All files of a monitoring host, or every mistake."""
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import plan as files
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump

    return asdict(files.plan(settings, targets, _directory(shipped), dump))


def monitoring_export(targets: Mapping[str, Any], shipped: str) -> dict[str, str]:
    """The files for an external Prometheus, by path."""
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import plan as files
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump

    return files.export(targets, _directory(shipped), dump)


def _directory(name: str) -> Path:
    if not Path(name).is_dir():
        raise AnsibleFilterError(f"{name} is not a directory: give the directory `files` of the role monitoring")
    return Path(name)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "monitoring_targets": monitoring_targets,
            "monitoring_plan": monitoring_plan,
            "monitoring_export": monitoring_export,
        }
