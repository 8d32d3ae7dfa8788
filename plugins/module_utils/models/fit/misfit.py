# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reason why a model does not fit, with settings that would fit. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ADAPTERS = "adapters"
"""The check of LoRA adapters: what it finds is certain, and not an estimate."""


GOLDEN = "golden-prompts"
"""The check of golden prompts. A misfit is a mistake in the input, which stops a run even if the release has served."""


def in_words(fits: Iterable[Mapping[str, Any]]) -> str:
    """Settings that fit, such as "max-model-len: 8192; or gpus: 2". Empty without any."""
    return "; or ".join(", ".join(f"{key}: {value}" for key, value in one.items()) for one in fits)


@dataclass(frozen=True)
class Misfit:
    """One reason why an instance would not start.

    `check` is the name of the check, `key` and `value` the flag or fact that fails. `fits` are settings that would pass
    this check. Each item is enough alone: flags or variables by name, and `gpus` for a number of equal GPUs. `fits` is
    empty if no such setting is known.
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
