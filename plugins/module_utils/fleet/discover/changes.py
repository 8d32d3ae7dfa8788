# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a discovery with the inventory of an earlier one. Private to the collection; runs on the controller."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import record
from .inventory import Discovery


def variables(directory: Path) -> dict[str, Any]:
    """The variables of all .yml files of a directory, encrypted files left out. Empty if there is no directory.

    Raises OSError, and ValueError for a file that is no YAML.
    """
    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*.yml")):
        found |= _read(path)
    return found


def _read(path: Path) -> dict[str, Any]:
    """The variables of one file. Raises OSError, and ValueError for a file that is no YAML."""
    import yaml

    try:
        return _parse(path.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} is no YAML in UTF-8: correct the file ({' '.join(str(error).split())})") from error


def _parse(content: str) -> dict[str, Any]:
    """Raises yaml.YAMLError."""
    import yaml

    if content.startswith("$ANSIBLE_VAULT"):
        return {}

    class Loader(yaml.SafeLoader):
        """Reads values with tags of Ansible, such as !vault, as UNREAD."""

    Loader.add_multi_constructor("!", lambda loader, suffix, value: record.UNREAD)
    # A subclass of the safe loader.
    parsed = yaml.load(content, Loader=Loader)
    return parsed if isinstance(parsed, dict) else {}


def hosts(path: Path) -> dict[str, str]:
    """The addresses of the machines of a hosts.yml, by name. Raises OSError, and ValueError if the file is no YAML."""
    return dict(_hosts(_read(path)))


def _hosts(groups: Any) -> Iterator[tuple[str, str]]:
    """Name and address of each host in these groups.

    Entries of another form are skipped: Ansible itself refuses a file with such entries as an inventory.
    """
    for group in _mapping(groups).values():
        for name, values in _mapping(_mapping(group).get("hosts")).items():
            yield str(name), str(_mapping(values).get("ansible_host") or name)
        yield from _hosts(_mapping(group).get("children"))


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def compare(out: Path, found: Discovery) -> list[str]:
    """A line for each difference between the machines and the inventory below `out`, and for each new machine.

    Raises OSError, and ValueError for a file that is no YAML.
    """
    common = variables(out / "group_vars/all") | variables(out / "group_vars/inference")
    declared = hosts(out / "hosts.yml")
    lines = []
    for name, now in found.records.items():
        own = variables(out / "host_vars" / name)
        if name not in declared:
            lines.append(f"{name}: is new: add this machine to hosts.yml. Its files are in host_vars/{name}")
        elif record.VARIABLE in own:
            before = record.settled(_mapping(own[record.VARIABLE]), now, {**common, **own})
            lines += record.differences(name, before, now)
        lines += record.proposals(name, {**common, **own}, found.proposed.get(name, {}))
    others = [name for name in declared if name not in found.records]
    if others:
        lines.append(f"not looked at, or no answer: {', '.join(others)}")
    return lines


def missing(out: Path, found: Discovery, *, again: bool = False) -> dict[str, str]:
    """The files that do not exist yet, by path: existing files belong to the operator. With `again`, also all records.

    Into an existing inventory, only the files of new machines are written: an operator may have deleted the others.
    Raises OSError, and ValueError for a hosts.yml that is no YAML.
    """
    place = out / "hosts.yml"
    declared = hosts(place) if place.exists() else {}
    new = {
        path
        for path in found.files
        if not (out / path).exists() and (not place.exists() or _is_new(out, path, declared))
    }
    return {
        path: content
        for path, content in found.files.items()
        if path in new or (again and path.endswith(f"/{record.VARIABLE}.yml"))
    }


def _is_new(out: Path, path: str, declared: Collection[str]) -> bool:
    """Whether a file belongs to a machine that hosts.yml does not name, or that has no variables in host_vars yet."""
    folder, _slash, rest = path.partition("/")
    if folder != "host_vars":
        return False
    name = rest.split("/")[0]
    single = [out / folder / f"{name}{ending}" for ending in ("", ".yml", ".yaml", ".json")]
    return name not in declared or not any(file.is_file() for file in (*single, *(out / folder / name).rglob("*")))
