# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes YAML in which each text takes one line. Private to the collection. Needs PyYAML, as on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def dump(value: Mapping[str, Any]) -> str:
    """YAML in the order of the value's keys.

    Each text takes one line, so that a diff can leave a secret out by its key.
    """
    # Imported here, because only the controller is sure to have PyYAML.
    import yaml

    class OneLine(yaml.SafeDumper):
        """Writes every value in full, never as a reference to another one."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: OneLine, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if "\n" in value else None)

    OneLine.add_representer(str, text)
    return str(yaml.dump(_plain(value), Dumper=OneLine, sort_keys=False, width=1 << 20, allow_unicode=True))


def _plain(value: Any) -> Any:
    """Ansible's types of text, list and mapping as Python's own."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value
