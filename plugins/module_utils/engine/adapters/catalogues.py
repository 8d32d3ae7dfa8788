# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogues of the engines' flags, by engine. Private to the collection.

A file of its own: the catalogues are large, and most files that need an adapter need no catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...models.flags import catalogue
from ...models.flags.catalogue import Catalogue
from . import DEFAULT, vllm

CATALOGUES: Mapping[str, Callable[[str], Catalogue]] = {vllm.ADAPTER.name: catalogue.choose}
"""Each chooses the catalogue of a version."""


def choose(version: str = "", name: str = DEFAULT) -> Catalogue:
    """The flags of a version of an engine; of its newest version if the version is unknown. Raises KeyError for an
    unknown engine."""
    return CATALOGUES[name](version)
