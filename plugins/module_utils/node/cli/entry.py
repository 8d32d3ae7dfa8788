# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start of the command `inferctl`. Private to the collection.

All commands together import more than 300 files, which takes most of a second. So the commands of an engine's unit
import only what they need.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...core.paths import Paths
from . import unit_steps


def main(arguments: Sequence[str] | None = None, paths: Paths | None = None) -> int:
    """Run one command and return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in unit_steps.VERBS:
        return unit_steps.main(words, paths)
    from . import inferctl

    return inferctl.main(words, paths)
