# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Affinity keys that no request to a model has. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..config.task_names import TRANSCRIBE
from .routing import HEADER, NAME, PREFIX, USER, of


def mistake(models: Mapping[str, Any], name: str, tasks: Sequence[str]) -> str:
    """Why no request to an entry has its affinity key; empty if one may have.

    `tasks` are those of the model, empty if unknown.
    """
    routing = of(models, name)
    if not routing or not routing.sources or HEADER in routing.sources or set(tasks) != {TRANSCRIBE}:
        return ""
    return (
        f"is in no request: clients send sound as a form, which has neither {USER} nor {PREFIX}. Use {HEADER}, and "
        f"name the header in {NAME}; or remove routing"
    )
