# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a discovery records of a machine, and how a later discovery differs from it. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .machine import Machine

VARIABLE = "discovered"
"""The variable with the record of a machine."""


class Unread:
    """A value with a tag of Ansible, such as an encrypted value, which discovery does not read. False, like an empty
    value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "(not read)"


UNREAD = Unread()


def record(machine: Machine) -> dict[str, Any]:
    """What identifies the parts of a machine: enough to see at the next discovery what has changed."""
    system = machine.system
    return {
        "machine_id": system.get("machine_id"),
        "hostname": machine.hostname,
        "system": system.get("pretty_name"),
        "kernel": system.get("kernel"),
        "memory_gib": round((system.get("memory_mib") or 0) / 1024),
        "addresses": machine.addresses,
        "driver": machine.driver.get("module_version"),
        "secure_boot": machine.secure_boot.get("enabled"),
        "gpus": {str(gpu.get("pci_bus_id")): gpu.get("product") or gpu.get("name") for gpu in machine.gpus},
        "nvswitch": machine.nvswitch,
        "rdma": {str(device["name"]): _ports(device) for device in machine.rdma},
        "disks": {str(disk["path"]): "; ".join(disk.get("obstacles") or ()) or "blank" for disk in machine.disks},
        "services": [
            f"{service.get('kind')} on port {service.get('port')}"
            for service in machine.services
            if service.get("kind")
        ],
    }


def _ports(device: Mapping[str, Any]) -> str:
    return ", ".join(f"{port.get('link_layer')} {port.get('state')}" for port in device.get("ports") or ())


def settled(before: Mapping[str, Any], now: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The record `before`, with the changes that the inventory caused by its driver, engines and disks."""
    changed = dict(before)
    version = str(declared.get("nvidia_driver_version") or "")
    if version and str(now.get("driver") or "").startswith(version):
        changed["driver"] = now["driver"]
    ports = [str(one.get("port")) for one in _mappings(declared.get("instances"))]
    own = [text for text in now.get("services") or () if text.rpartition(" ")[2] in ports]
    changed["services"] = [*dict.fromkeys([*(before.get("services") or ()), *own])]
    formatted = [str(path) for disk in _mappings(declared.get("common_disks")) for path in disk.get("devices") or ()]
    there, found = before.get("disks") or {}, now.get("disks") or {}
    changed["disks"] = {path: found.get(path, text) if path in formatted else text for path, text in there.items()}
    return changed


def _mappings(declared: Any) -> list[Mapping[str, Any]]:
    """The mappings of a declared list; none where the inventory has a template."""
    return [one for one in declared if isinstance(one, Mapping)] if isinstance(declared, list) else []


def differences(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each difference between the record of a machine and the machine."""
    return [f"{name}: {line}" for key in now for line in _differences(key, before.get(key), now[key])]


def _differences(key: str, before: Any, now: Any) -> Iterator[str]:
    if before == now or (not before and not now):
        return
    if isinstance(now, Mapping):
        there = before if isinstance(before, Mapping) else {}
        yield from (f"{key}: {part} is gone ({there[part]})" for part in there if part not in now)
        yield from (f"{key}: {part} is new ({now[part]})" for part in now if part not in there)
        yield from (
            f"{key}: {part} was {there[part]}, is {now[part]}"
            for part in now
            if there.get(part, now[part]) != now[part]
        )
    elif isinstance(now, list):
        listed: Sequence[Any] = before if isinstance(before, list) else []
        yield from (f"{key}: {part} is gone" for part in listed if part not in now)
        yield from (f"{key}: {part} is new" for part in now if part not in listed)
    else:
        yield f"{key} was {before}, is {now}"


def proposals(name: str, declared: Mapping[str, Any], proposed: Mapping[str, Any]) -> list[str]:
    """A line for each variable that the inventory sets to another value than this discovery proposes.

    A variable that the inventory does not set gets no line: an operator may have removed the variable. Flags that an
    operator has added to a model's entry, and values with a tag, such as encrypted values, are no difference.
    """
    return [
        f"{name}: {variable} is {declared[variable]!r} in the inventory, this discovery proposes {value!r}"
        for variable, value in proposed.items()
        if variable in declared and not _agrees(declared[variable], value)
    ]


def _agrees(declared: Any, proposed: Any) -> bool:
    """Whether a declared value has everything that is proposed, or is not read. Mappings may have further keys."""
    if isinstance(declared, Unread):
        return True
    if isinstance(declared, Mapping) and isinstance(proposed, Mapping):
        return all(key in declared and _agrees(declared[key], value) for key, value in proposed.items())
    return bool(declared == proposed)
