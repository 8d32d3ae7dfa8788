# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a release of an instance in place of what runs. Private to the collection."""

from __future__ import annotations

from contextlib import suppress

from ..core import systemd
from ..core.paths import Paths, unit_name
from .state import releases


def runs(paths: Paths, name: str, number: int) -> bool:
    """Whether the release is the active one, its installed files are sound, and systemd runs or starts its unit.
    Raises ReleaseError, SystemdError."""
    return (
        releases.active_number(paths, name) == number
        and systemd.active_state(unit_name(name)) in systemd.RUNNING
        and releases.installed(paths, name, number)
    )


def run(paths: Paths, name: str, number: int) -> None:
    """Stop the instance, and start the release. Do not wait until the engine answers.

    Raises ReleaseError, SystemdError and OSError.
    """
    unit = unit_name(name)
    # Verify before the stop: a damaged release must not end the release that serves.
    releases.verify(paths, name, number)
    if systemd.active_state(unit) != "inactive":
        # systemd refuses to stop a unit that is not loaded, such as before the first start.
        systemd.systemctl("stop", unit)
    _install(paths, name, number)
    systemd.systemctl("start", "--no-block", unit)


def restart(paths: Paths, name: str, number: int) -> None:
    """Install a release, and have systemd restart the instance with it. The caller is a process of the unit:
    the restart ends this process, so the function does not wait.

    Raises ReleaseError, SystemdError and OSError.
    """
    releases.verify(paths, name, number)
    _install(paths, name, number)
    # systemd may stop the unit, and with it this systemctl, before systemctl has ended.
    with suppress(systemd.Terminated):
        systemd.systemctl("restart", "--no-block", unit_name(name))


def _install(paths: Paths, name: str, number: int) -> None:
    unit = unit_name(name)
    releases.activate(paths, name, number)
    systemd.systemctl("daemon-reload")
    # Enable before the reset: the target then loads the unit, and systemd cannot reset a unit that is not loaded.
    systemd.systemctl("enable", unit)
    systemd.systemctl("reset-failed", unit)
