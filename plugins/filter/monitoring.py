# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A monitoring host: who is asked, and with what files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import plan as files
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.targets import Inventory, targets


class OneLine(yaml.SafeDumper):
    """Every value on the line of its key, so that a diff can leave a secret out by its key."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: OneLine, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if "\n" in value else None)


OneLine.add_representer(str, _text)


def dump(value: Mapping[str, Any]) -> str:
    """YAML in the order of the value's keys."""
    return str(yaml.dump(_plain(value), Dumper=OneLine, sort_keys=False, width=1 << 20, allow_unicode=True))


def _plain(value: Any) -> Any:
    """Ansible's own kinds of text, list and mapping as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def monitoring_targets(
    hostvars: Mapping[str, Any],
    nodes: Iterable[str] = (),
    gateways: Iterable[str] = (),
    monitors: Iterable[str] = (),
    own: str = "",
) -> dict[str, Any]:
    """What the Prometheus on host `own` asks."""
    return asdict(targets(Inventory(tuple(nodes), tuple(gateways), tuple(monitors), hostvars), own))


def monitoring_plan(settings: Mapping[str, Any], targets: Mapping[str, Any], shipped: str) -> dict[str, Any]:
    """All files of a monitoring host, or every mistake."""
    return asdict(files.plan(settings, targets, _directory(shipped), dump))


def monitoring_export(targets: Mapping[str, Any], shipped: str) -> dict[str, str]:
    """What a Prometheus elsewhere needs, by path."""
    return files.export(targets, _directory(shipped), dump)


def _directory(name: str) -> Path:
    if not Path(name).is_dir():
        raise AnsibleFilterError(f"{name}: there is no such directory: it must be the directory `files` of the role")
    return Path(name)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "monitoring_targets": monitoring_targets,
            "monitoring_plan": monitoring_plan,
            "monitoring_export": monitoring_export,
        }
