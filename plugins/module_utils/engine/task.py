# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that a release's engine answers. Private to the collection."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from .adapters.contract import GENERATE
from .release import Release


def of(release: Release) -> str:
    """The task by which the engine is probed: the first one; GENERATE if that is unknown or has no request."""
    found = (*_read(release)[0], GENERATE)[0]
    return found if found in release.adapter.requests else GENERATE


def certain(release: Release) -> tuple[str, ...]:
    """The tasks of the model with the release's flags; empty where they are not certain."""
    return _read(release)[1]


def _read(release: Release) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The likely and the certain tasks; empty where unknown, such as without the model's files."""
    try:
        return _tasks(release.model_path, json.dumps(release.flags, sort_keys=True))
    except LookupError:
        return (), ()


@lru_cache(maxsize=256)
def _tasks(path: str, flags: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Raises LookupError if the tasks are unknown. The error is not cached: the models' disk may be mounted later."""
    # Most commands of an engine's unit need none of the tables of models.
    from ..models.config import facts, tasks

    gathered, entry = facts.gather(Path(path)), json.loads(flags)
    known = tasks.tasks(gathered, entry)
    if not known:
        raise LookupError(path)
    return known, tasks.certain(gathered, entry)
