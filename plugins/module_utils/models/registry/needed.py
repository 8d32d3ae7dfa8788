# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries that an engine needs in addition to its own: bases, draft models, adapters. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import adapters, drafts
from .variants import lineage


def needed(models: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """The entries of a model registry that the engines of these entries need, with the entries themselves."""
    served = list(names)
    extra = (*drafts.of(models, served), *adapters.of(models, served))
    return {each for name in (*served, *extra) for each in lineage(models, name)}
