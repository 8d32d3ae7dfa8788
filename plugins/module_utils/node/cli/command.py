# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all commands of `inferctl` share. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.paths import Paths
from ...core.problems import nearest
from ...engine.state import releases

OK, FAILED, USAGE, LOADING, UNCLEAR = 0, 1, 2, 3, 4
"""Exit codes: fine; failed or a problem was found; wrong usage; not ready yet; cannot be told."""


class UsageError(Exception):
    """The command cannot do what was asked; the message says what to do instead."""


def known(paths: Paths, names: Sequence[str]) -> list[str]:
    """The names asked for, or all. Raises UsageError for one that this node does not have."""
    there = releases.names(paths)
    for name in names:
        if name not in there:
            raise UsageError(f"no instance {name!r} on this node: {nearest(name, there)}")
    return list(dict.fromkeys(names)) or there
