# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task by which a release's engine is probed. Private to the collection."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from .adapters.contract import GENERATE
from .release import Release


def of(release: Release) -> str:
    """The first task of the model with the release's flags; GENERATE where the model's files are not there.

    Reads the files of the model once in the life of the process: their headers, not the weights.
    """
    try:
        found = _first(release.model_path, json.dumps(release.flags, sort_keys=True))
    except LookupError:
        return GENERATE
    return found if found in release.adapter.requests else GENERATE


@lru_cache(maxsize=256)
def _first(path: str, flags: str) -> str:
    """Raises LookupError where unknown, which is not cached: the disk of the models may be mounted later."""
    # Most starts of the unit's steps need none of the tables of models.
    from ..models.config import facts, tasks

    known = tasks.tasks(facts.gather(Path(path)), json.loads(flags))
    if not known:
        raise LookupError(path)
    return known[0]
