# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be, and what could. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Misfit:
    """One reason why an instance would not start.

    `check` names what was checked, `key` and `value` are the flag or the fact it failed for. `fits` holds what would
    pass this check: each item is a set of settings that is enough by itself, flags by their name, and `gpus` for that
    many of the same GPUs. It is empty where no setting helps.
    """

    check: str
    key: str
    value: Any
    message: str
    fits: Sequence[Mapping[str, Any]] = ()

    def __str__(self) -> str:
        return (
            f"{self.key}: {self.value!r}: {self.message}" if self.value is not None else f"{self.key}: {self.message}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "check": self.check,
            "key": self.key,
            "value": self.value,
            "message": self.message,
            "fits": [dict(one) for one in self.fits],
        }
