# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's answer to `show stat`. Private to the collection. Pure.

Its first line names the columns, behind a `#`. Source: HAProxy's management guide, 9.1.
"""

from __future__ import annotations

import csv
import io
from functools import lru_cache

FRONTEND, BACKEND = "FRONTEND", "BACKEND"
"""What stands in the place of a server's name where a row is of all of a proxy."""


@lru_cache(maxsize=1)
def rows(stat: str) -> tuple[dict[str, str], ...]:
    """The rows, each by its columns' names. One answer is read for several things: 5 ms of processor for 300 rows."""
    return tuple(csv.DictReader(io.StringIO(stat.removeprefix("# "))))
