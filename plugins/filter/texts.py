# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that reads files of the controller.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

VAULT = "$ANSIBLE_VAULT;"
"""The beginning of a file that ansible-vault has encrypted."""


def file_texts(entries: Any, key: str) -> Any:
    """Entries whose `key` has the text of a file in place of its path. Raises AnsibleFilterError.

    Values of another form stay: the module that gets them reports what is wrong.
    """
    if not isinstance(entries, list):
        return entries
    return [
        {**entry, key: _text(entry[key])} if isinstance(entry, dict) and key in entry else entry for entry in entries
    ]


def _text(value: Any) -> Any:
    import os.path
    from pathlib import Path

    if not isinstance(value, str) or not os.path.isfile(value):
        return value
    try:
        text = Path(value).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise AnsibleFilterError(f"file_texts: {value} on the controller cannot be read: {error}") from error
    if text.startswith(VAULT):
        raise AnsibleFilterError(
            f"file_texts: {value} on the controller is encrypted by ansible-vault. Name a file that is not encrypted,"
            " or put the text itself into the inventory"
        )
    return text


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"file_texts": file_texts}
