# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place of a published model, as a release names it. Private to the collection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoredModel:
    """Path and revision of a model on the node."""

    path: str
    revision: str
