# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the subnet manager of an InfiniBand port whether it still runs. Private to the collection.

No file of the kernel shows this: a port remains active, and keeps the address (LID) of a manager that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.commands import Outcome

Run = Callable[[Sequence[str]], Outcome]

NO_ANSWER = "failed: query"
"""Other failures do not show whether the manager runs: the node may lack /dev/infiniband/umad0. Source: sminfo.c of
infiniband-diags."""

MASTER = "SMINFO_MASTER"


def answers(device: str, port: int, run: Run) -> bool | None:
    """Whether the manager of a port answers; None if unknown, as without infiniband-diags."""
    outcome = run(["sminfo", "-C", device, "-P", str(port)])
    if outcome.code == 0:
        return True if MASTER in outcome.stdout else None
    # Errors are in the normal output.
    return False if NO_ANSWER in outcome.stdout else None
