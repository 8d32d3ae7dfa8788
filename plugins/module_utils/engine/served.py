# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which entries of the registry the instances need. Private to the collection.

A filter that many tasks use imports this file, and each task compiles the imports anew: the file imports little, and
does not read the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..models.registry import drafts
from ..models.registry.variants import lineage
from .inventory import present_instances


def served_models(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, Any]:
    """The entries whose weights at least one present instance needs: a variant needs its base's. Drafts count."""
    asked = [item.get("model") for item in present_instances(instances) if isinstance(item, Mapping)]
    names = [name for name in asked if isinstance(name, str)]
    ancestry = [lineage(models, name) for name in (*names, *drafts.of(models, names))]
    # The last entry of a lineage has a base only where the base is a mistake, which the check of the registry reports.
    wanted = {names[-1] for names in ancestry if names and "base" not in models[names[-1]]}
    return {name: entry for name, entry in models.items() if name in wanted}
