# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapters of the engines, by name. Private to the collection; pure.

An adapter has the flags, variables, requests and metrics of one engine. models/flags and models/fit have flags of vLLM,
too.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import vllm
from .contract import Adapter

ENGINES: Mapping[str, Adapter] = {adapter.name: adapter for adapter in (vllm.ADAPTER,)}
"""A further engine needs a file of its own in this package, and an item here."""

DEFAULT = vllm.ADAPTER.name
"""The engine of all models: an entry of the model registry cannot name another engine."""


def get(name: str = DEFAULT) -> Adapter:
    """The adapter of an engine. Raises ValueError for an unknown name."""
    if name not in ENGINES:
        raise ValueError(f"{name!r} is no engine: use one of {', '.join(sorted(ENGINES))}")
    return ENGINES[name]
