# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the settings of the role model_store. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ..core.problems import Problem

ROLE = "role model_store"

LEAST: Mapping[str, tuple[int, str]] = {
    "reserve_gib": (0, "0 or more GiB"),
    "fast_limit_gib": (0, "0 (no limit) or more GiB"),
    "parallel_transfers": (1, "1 or more"),
    "peer_transfers": (1, "1 or more"),
    "keep": (1, "1 or more"),
}
"""The least value of each number, and the text that says what is allowed."""

_BELOW_ROOT = re.compile(r"/[^/]")


def problems(settings: Mapping[str, Any]) -> list[Problem]:
    """Every mistake in the settings. Keys are the role's variables without `model_store_`."""
    found = []
    store, fast = str(settings["path"]), str(settings["fast_path"])
    if not _BELOW_ROOT.match(store):
        message = "must be an absolute path below /: set it to the directory for models on the node"
        found.append(Problem(ROLE, message, "model_store_path", store))
    if fast and (not _BELOW_ROOT.match(fast) or _overlap(PurePosixPath(store), PurePosixPath(fast))):
        message = (
            f"must be empty, or an absolute path that neither contains model_store_path ({store}) nor lies in it, such "
            "as /mnt/nvme/workspace/models"
        )
        found.append(Problem(ROLE, message, "model_store_fast_path", fast))
    for key, (least, allowed) in LEAST.items():
        if float(settings[key]) < least:
            found.append(Problem(ROLE, f"must be {allowed}", f"model_store_{key}", settings[key]))
    return found


def _overlap(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
