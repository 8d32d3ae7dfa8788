# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls systemctl, and sends a service's state to systemd. Private to the collection."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

RUNNING = frozenset({"active", "activating", "reloading", "refreshing"})
"""States of a unit that runs or starts. `activating` includes the pause before an automatic restart."""

CALL_TIMEOUT = 120
"""Timeout in seconds of a systemctl call that does not wait for the start or stop of a unit."""

STOP_TIMEOUT = 2 * 60 * 60
"""Timeout in seconds of a call that waits for the start or stop of a unit, such as an engine's."""


class SystemdError(Exception):
    """systemctl failed or is missing. The message contains its output."""


class Terminated(SystemdError):
    """SIGTERM ended systemctl."""


def systemctl(*arguments: str) -> str:
    """Run systemctl and return its output. Raises SystemdError, also Terminated."""
    blocking = bool({"stop", "restart", "start"} & set(arguments)) and "--no-block" not in arguments
    command = ["systemctl", *arguments]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=STOP_TIMEOUT if blocking else CALL_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemdError(f"{' '.join(command)}: {error}") from error
    if result.returncode != 0:
        message = (result.stderr or result.stdout).strip() or f"exit code {result.returncode}"
        kind = Terminated if result.returncode == -signal.SIGTERM else SystemdError
        raise kind(f"{' '.join(command)}: {message}")
    return result.stdout


def show(units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
    """Properties of units, by unit. A unit that does not exist has LoadState=not-found. Times have the form @SECONDS.

    Raises SystemdError.
    """
    names = list(units)
    if not names:
        return {}
    text = systemctl("show", "--timestamp=unix", f"--property={','.join(properties)}", "--", *names)
    return dict(zip(names, parse_show(text), strict=True))


def parse_show(text: str) -> list[dict[str, str]]:
    """Parse the output of `systemctl show`: the properties of each unit, in the order of the call."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return [dict(line.partition("=")[::2] for line in block.strip().splitlines()) for block in blocks]


def active_state(unit: str) -> str:
    """`active`, `activating`, `inactive`, `failed` …; `inactive` for a unit that does not exist."""
    return show([unit], ["ActiveState"])[unit]["ActiveState"]


def stop_and_disable(unit: str, *, installed: bool) -> None:
    """Stop a unit. If its file is installed, also disable the unit. Raises SystemdError."""
    if installed:
        systemctl("stop", unit)
        systemctl("disable", unit)
    elif active_state(unit) in RUNNING:
        systemctl("stop", unit)
    if active_state(unit) == "failed":
        systemctl("reset-failed", unit)


def remove_units(units: Iterable[Path], stopped: Iterable[str], *, check: bool) -> tuple[list[Path], list[str]]:
    """Stop and disable the units `stopped`, in this order, and remove the files of `units`.

    Returns the existing files of `units`, and the running units of `stopped`. `check` changes nothing. Raises
    SystemdError, OSError.
    """
    there = [path for path in units if path.exists()]
    installed = {path.name for path in there}
    names = list(stopped)
    states = show(names, ["ActiveState", "NeedDaemonReload"])
    running = [name for name in names if states[name]["ActiveState"] in RUNNING]
    # A removal that was cut off can leave units in systemd whose files are gone.
    stale = any(state.get("NeedDaemonReload") == "yes" for state in states.values())
    if check or not (there or running or stale):
        return there, running
    for name in names:
        if name in installed or name in running:
            stop_and_disable(name, installed=name in installed)
    for path in there:
        path.unlink()
    systemctl("daemon-reload")
    return there, running


class Notifier:
    """Sends the state of a service of Type=notify to systemd (sd_notify(3)). Outside of systemd, it does nothing."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        address = (os.environ if environment is None else environment).get("NOTIFY_SOCKET", "")
        # A leading @ stands for an address in the abstract namespace.
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def send(self, **variables: str | int) -> None:
        """Send variables, such as STATUS="loading" or READY=1.

        Errors are ignored: systemd does not answer during a daemon-reexec, which must not end the service.
        """
        if not self._address:
            return
        # A line break would end the variable.
        message = "\n".join(f"{key}={' '.join(str(value).split())}" for key, value in variables.items())
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(1)
            channel.sendto(message.encode(), self._address)
