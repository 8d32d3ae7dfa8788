# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which entries of the model registry the instances need. Private to the collection.

A filter that many tasks use imports this file, and each task compiles the imports anew: the file imports little, and
does not check the model registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..models.registry import adapters
from ..models.registry.needed import needed
from .inventory import present_instances


def served_models(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, Any]:
    """The entries whose weights at least one present instance needs, also those of drafts and adapters.

    A variant needs the weights of its base. In the result, the source of an adapter is under `model`, as in other
    entries.
    """
    asked = [item.get("model") for item in present_instances(instances) if isinstance(item, Mapping)]
    names = [name for name in asked if isinstance(name, str)]
    wanted = needed(models, names)
    own = {name: entry for name, entry in models.items() if name in wanted}
    return {
        name: adapters.source(entry) if adapters.is_adapter(entry) else entry
        for name, entry in own.items()
        if "base" not in entry or adapters.is_adapter(entry)
    }
