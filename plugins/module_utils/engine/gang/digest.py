# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of a gang's release: the same on two members exactly if what they must share is the same.

Private to the collection. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..adapters.contract import Adapter
from ..environment import ENGINE_CONFIG
from .members import Gang


def parts(
    gang: Gang,
    image: str,
    model: str,
    revision: str,
    port: int,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    engine: Adapter,
) -> dict[str, Any]:
    """What all members must share. `environment` has the site's variables, and those of NCCL and Gloo. Variables
    that may differ between members, and variables with API keys, are left out. Values are hashed, because they may be
    secrets. A report seals the hashes (compare.py), since a reader of a plain hash can try values.
    """
    free = {*engine.gangs.per_node, engine.variables.api_key, ENGINE_CONFIG}
    return {
        "members": [[member.node, member.address] for member in gang.members],
        "ports": [port, gang.gang_port, gang.rendezvous_port],
        **({"executor": gang.executor} if gang.executor else {}),
        **({"dashboard": True} if gang.dashboard else {}),
        "image": image,
        "model": model,
        "revision": revision,
        "arguments": list(arguments),
        "environment": {key: _hash(value) for key, value in sorted(environment.items()) if key not in free},
    }


def digest(shared: Mapping[str, Any], name: str) -> str:
    """The digest of the gang with this name. `shared` is the result of parts()."""
    return _hash(json.dumps([name, shared], sort_keys=True, separators=(",", ":")))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
