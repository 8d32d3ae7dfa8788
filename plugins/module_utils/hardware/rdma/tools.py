# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs programs for data that sysfs lacks. Private to the collection.

If a program is missing, fails or hangs, only its own data is missing, and its status has the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...core.commands import Outcome
from . import iproute, verbs

Run = Callable[[Sequence[str]], Outcome]

NO_RDMA_SUBSYSTEM, NO_DEVICES, FAILED, MALFORMED = "no_rdma_subsystem", "no_devices", "failed", "malformed_output"

MESSAGES = {"Failed to open NETLINK_RDMA socket": NO_RDMA_SUBSYSTEM, "No IB devices found": NO_DEVICES}
"""Kind of a failure by words of the output. Sources: iproute2 rdma/utils.c; rdma-core
libibverbs/examples/devinfo.c."""


@dataclass(frozen=True)
class Error:
    """Why a program's output is missing or incomplete."""

    kind: str
    message: str


@dataclass(frozen=True)
class Status:
    """The result of a program's run; `ok` is None if it did not run."""

    ok: bool | None = None
    error: Error | None = None


@dataclass(frozen=True)
class Rdma:
    """The answer of `rdma`."""

    status: Status = Status()
    links: list[iproute.Link] = field(default_factory=list)
    devices: list[iproute.Device] = field(default_factory=list)


@dataclass(frozen=True)
class Mtus:
    """The answer of `ibv_devinfo`, by device and port."""

    status: Status = Status()
    by_port: dict[tuple[str, int], verbs.Mtu] = field(default_factory=dict)


@dataclass(frozen=True)
class Netdev:
    """A network device. None for a value that is not printed."""

    mac: str | None = None
    """The permanent address."""
    mtu_max: int | None = None


@dataclass(frozen=True)
class Addresses:
    """The answer of `ip`: addresses by network device, each with the length of its prefix."""

    status: Status = Status()
    by_netdev: dict[str, list[str]] = field(default_factory=dict)
    netdevs: dict[str, Netdev] = field(default_factory=dict)


def rdma(program: str | None, run: Run) -> Rdma:
    """Read devices and ports by `rdma`. Without a `program`, here and below, the result is empty."""
    if program is None:
        return Rdma()
    links: list[iproute.Link] = []
    outcome = run([program, "-j", "link"])
    try:
        links = iproute.links(outcome.stdout)
        error = _error(outcome)
        # A second call would fail in the same way.
        if error:
            return Rdma(Status(False, error), links)
        outcome = run([program, "-j", "dev"])
        devices = iproute.devices(outcome.stdout)
    except ValueError as problem:
        return Rdma(Status(False, _error(outcome) or Error(MALFORMED, f"{program}: {problem}")), links)
    error = _error(outcome)
    return Rdma(Status(error is None, error), links, devices)


def mtus(program: str | None, run: Run) -> Mtus:
    """Read the MTUs of all ports by `ibv_devinfo`."""
    if program is None:
        return Mtus()
    outcome = run([program])
    error = _error(outcome)
    return Mtus(Status(error is None, error), verbs.mtus(outcome.stdout))


def addresses(program: str | None, run: Run) -> Addresses:
    """Read the addresses of all network devices by `ip`, and the limits of their MTUs."""
    if program is None:
        return Addresses()
    outcome = run([program, "-j", "-d", "address"])
    error = _error(outcome)
    if error:
        return Addresses(Status(False, error))
    try:
        devices = json.loads(outcome.stdout)
        found = {
            device["ifname"]: [f"{one['local']}/{one['prefixlen']}" for one in device["addr_info"] if "local" in one]
            for device in devices
        }
        # permaddr is printed only where the address is another one, as in a bond.
        netdevs = {
            device["ifname"]: Netdev(device.get("permaddr") or device.get("address"), device.get("max_mtu"))
            for device in devices
        }
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as problem:
        return Addresses(Status(False, Error(MALFORMED, f"{program}: {problem!r}")))
    return Addresses(Status(True), found, netdevs)


def _error(outcome: Outcome) -> Error | None:
    """The error of a run; None without one."""
    if outcome.failure:
        return Error(outcome.failure, outcome.message)
    if outcome.code == 0:
        return None
    output = " ".join(f"{outcome.stderr} {outcome.stdout}".split())[:1000]
    kind = next((kind for words, kind in MESSAGES.items() if words in output), FAILED)
    return Error(kind, f"exit status {outcome.code}: {output or 'without a message'}")
