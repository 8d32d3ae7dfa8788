# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies and compares the rails' settings that a run has recorded on the node. Private to the collection.

A reboot undoes all settings but those in files. A driver that is loaded again, or a device that is added again, starts
without its settings, too.
"""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...core import files
from ...core.paths import Paths
from ..rdma import facts as rdma_facts
from ..rdma.managers import NETWORKD
from . import apply, desired, differences, rails
from .apply import Run, SettingError, state
from .desired import Desired, Rail
from .differences import Comparison, Difference
from .rails import Port
from .variables import INFINIBAND

PARTS = (
    *(rdma_facts.GIDS, rdma_facts.ADDRESSES, rdma_facts.TOOLS, rdma_facts.GPUS, rdma_facts.NICS, rdma_facts.SETTINGS),
    rdma_facts.DMA_BUF,
)
"""All facts but the counters, which are not needed here."""

NAMES = (rdma_facts.GIDS, rdma_facts.ADDRESSES, rdma_facts.TOOLS)
"""The facts that name each port, with its network device."""

POLL_SECONDS = 1.0
"""Seconds between two checks for devices and addresses that are still missing."""

ADDRESS_SECONDS = 10.0
"""How many seconds a network device may take to get its address, its rule, and the MTU of its multicast group."""


GROUP_MTU_HINT = (
    "the multicast group of IP over InfiniBand allows no more: give the group an MTU of 4096 in the subnet manager, or "
    "set rdma_mtu to 2044"
)


@dataclass
class Report:
    """The settings that were changed, and those that were not."""

    changes: list[Difference] = field(default_factory=list)
    pending: list[Difference] = field(default_factory=list)
    """Differences that would stop the traffic of a rail while engines use it."""
    failures: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """The keys of rails whose port does not exist."""

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return {
            **asdict(self),
            "changes": [{**asdict(one), "text": str(one)} for one in self.changes],
            "pending": [{**asdict(one), "text": str(one)} for one in self.pending],
        }


@contextmanager
def alone(paths: Paths, check: bool = False) -> Iterator[bool]:
    """Keep other processes from making settings: at a boot, each device starts a process. With `check`, no lock is
    needed.

    Yields whether this process waited for another one, so that facts read before may be stale. Raises OSError.
    """
    if check:
        yield False
        return
    paths.rdma_lock.parent.mkdir(parents=True, exist_ok=True)
    with paths.rdma_lock.open("w", encoding="ascii") as handle:
        waited = False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield waited


def absent(wanted: Desired, report: Report) -> list[str]:
    """A line for each rail whose port does not exist."""
    return [
        f"rail {number} ({rail.key}): this node has no such RDMA device; see lspci and dmesg"
        for number, rail in enumerate(wanted.rails)
        if rail.key in report.missing
    ]


def gather(root: Path, run: Run, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """The facts of this machine."""
    here = root == Path("/")
    programs = rdma_facts.Programs("rdma", "ibv_devinfo", "ip", "dcb", sys.executable if here else None)
    # `rdma` would load kernel modules on a machine without RDMA.
    return rdma_facts.gather(root, parts, programs if rdma_facts.has_rdma(root) else rdma_facts.Programs(), run)


def read(paths: Paths) -> Desired | None:
    """The recorded settings; None without any. Raises ValueError for a damaged file, OSError."""
    stored = files.read_json(paths.rdma_settings)
    return None if stored is None else desired.of(stored, str(paths.rdma_settings))


def record_waiting(paths: Paths, report: Report) -> None:
    """Record the settings that wait for a drain, for the status of the node. Raises OSError."""
    lines = [str(one) for one in report.pending]
    files.write(paths.rdma_waiting, files.to_json(lines) if lines else None)


def waiting(paths: Paths) -> list[str]:
    """The settings that waited for a drain when they were last applied. Empty if the file is missing or damaged."""
    try:
        return [str(line) for line in files.read_json(paths.rdma_waiting) or ()]
    except (OSError, ValueError, TypeError):
        return []


def compare(root: Path, wanted: Desired, facts: dict[str, Any], run: Run) -> Comparison:
    """Compare the recorded settings with the machine."""
    found = rails.ports(facts)
    ports = {port.key: port for port in found}
    states = {rail.key: state(root, rail, ports[rail.key], run) for rail in wanted.rails if rail.key in ports}
    return differences.compare(wanted, found, states)


def settle(
    root: Path,
    wanted: Desired,
    facts: dict[str, Any],
    run: Run,
    busy: bool,
    check: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """Make all settings that differ. While engines are `busy`, disruptive settings wait. With `check`, only predict.

    Reads the machine again after changes: a changed setting that still differs is a failure.
    """
    compared = compare(root, wanted, facts, run)
    report = Report(unknown=compared.unknown, missing=compared.missing)
    ports = {port.key: port for port in rails.ports(facts)}
    report.pending = [one for one in compared.differences if busy and one.disruptive]
    due = [one for one in compared.differences if one not in report.pending]
    rules = [one for one in due if one.setting == "rule"]
    others = [one for one in due if one not in rules]
    if check:
        report.changes = [*others, *rules]
        return report
    _make(root, wanted, others, ports, run, report)
    if rules and wanted.manager == NETWORKD:
        if not report.pending:
            # networkd reads the rules of addresses that stay. It would also change the addresses in `pending`.
            run(["networkctl", "reload"])
        _wait_for_networkd([(wanted.rails[one.rail], ports[wanted.rails[one.rail].key]) for one in rules], run, sleep)
    _make(root, wanted, rules, ports, run, report)
    if report.changes:
        still = _left(root, wanted, report.changes, run, sleep)
        for change in list(report.changes):
            same = still.get((change.rail, change.setting))
            if same is not None:
                report.changes.remove(change)
                hint = f"; {GROUP_MTU_HINT}" if _of_group(wanted, same) else ""
                report.failures.append(f"{change}: the value did not stay; it is now {same.before}{hint}")
    return report


def _of_group(wanted: Desired, difference: Difference) -> bool:
    """Whether the subnet manager limits the setting, as in the mode datagram. Source: ipoib_change_mtu of Linux."""
    rail = wanted.rails[difference.rail]
    return difference.setting == "mtu" and rail.layer == INFINIBAND and rail.ipoib_mode != "connected"


def _make(
    root: Path, wanted: Desired, due: Sequence[Difference], ports: Mapping[str, Port], run: Run, report: Report
) -> None:
    """Make settings. Adds changes and failures to the report."""
    for difference in due:
        rail = wanted.rails[difference.rail]
        try:
            apply.apply(root, difference, rail, ports[rail.key], wanted.manager, run)
        except SettingError as error:
            report.failures.append(f"{difference}: {error}")
        else:
            report.changes.append(difference)


def _wait_for_networkd(ruled: Sequence[tuple[Rail, Port]], run: Run, sleep: Callable[[float], None]) -> None:
    """Wait until networkd has made the rules of its files, for at most ADDRESS_SECONDS. networkd configures a link
    after `networkctl` has ended.
    """
    deadline = time.monotonic() + ADDRESS_SECONDS
    while not all(apply.has_rule(rail, port.netdev or "", run) for rail, port in ruled):
        if time.monotonic() >= deadline:
            return
        sleep(POLL_SECONDS)


def _left(
    root: Path, wanted: Desired, changes: Sequence[Difference], run: Run, sleep: Callable[[float], None]
) -> dict[tuple[int, str], Difference]:
    """The changes that differ after they were made, by rail and setting. networkd sets address and rule, and the subnet
    manager the MTU, some time after the command has ended."""
    made = {(change.rail, change.setting) for change in changes}
    deadline = time.monotonic() + ADDRESS_SECONDS
    while True:
        left = compare(root, wanted, gather(root, run), run).differences
        still = {(one.rail, one.setting): one for one in left if (one.rail, one.setting) in made}
        late = any(setting in ("address", "rule") or _of_group(wanted, one) for (_rail, setting), one in still.items())
        if not late or time.monotonic() >= deadline:
            return still
        sleep(POLL_SECONDS)


def wait_for_devices(
    root: Path, wanted: Desired, run: Run, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """The facts, as soon as the devices of all rails exist, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        # To read the settings takes many programs. While a node boots, other services need its processors.
        there = {port.key: port.netdev for port in rails.ports(gather(root, run, NAMES))}
        ready = all(rail.key in there and (there[rail.key] or not _needs_netdev(rail)) for rail in wanted.rails)
        if ready or time.monotonic() >= deadline:
            return gather(root, run)
        sleep(POLL_SECONDS)


def _needs_netdev(rail: Rail) -> bool:
    """Whether a rail has settings of its network device. InfiniBand works without one."""
    return any((rail.mtu, rail.address, rail.pfc, rail.dscp, rail.ipoib_mode, rail.partition_keys, rail.sysctls))
