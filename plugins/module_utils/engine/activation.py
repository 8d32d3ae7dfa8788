# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Having an engine run one of its releases. Private to the collection."""

from __future__ import annotations

from ..core import systemd
from ..core.paths import Paths, unit_name
from .state import releases


def runs(paths: Paths, name: str, number: int) -> bool:
    """Whether the release runs, or loads, from the files that it installs. Raises ReleaseError, SystemdError."""
    return (
        releases.active_number(paths, name) == number
        and systemd.active_state(unit_name(name)) in systemd.RUNNING
        and releases.installed(paths, name, number)
    )


def run(paths: Paths, name: str, number: int) -> None:
    """Stop what runs, and start the release, without waiting for its answer.

    Raises ReleaseError, SystemdError and OSError.
    """
    unit = unit_name(name)
    # The text is read before anything ends: a damaged release must not cost the one that serves.
    releases.verify(paths, name, number)
    if systemd.active_state(unit) != "inactive":
        # systemd refuses to stop what it does not know, as before the first start.
        systemd.systemctl("stop", unit)
    releases.activate(paths, name, number)
    systemd.systemctl("daemon-reload")
    # Before the next: wanted by the target, it is loaded, and what is not cannot be reset.
    systemd.systemctl("enable", unit)
    systemd.systemctl("reset-failed", unit)
    systemd.systemctl("start", "--no-block", unit)
