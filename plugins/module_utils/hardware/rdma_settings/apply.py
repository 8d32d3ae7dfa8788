# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes single settings of rails on a machine. Private to the collection.

Some drivers and devices take a value and keep the old one: boot.settle() reads the values again.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...core import sysfs
from ...core.commands import Outcome
from .. import pci, pci_config
from ..rdma import settings
from ..rdma.managers import IFUPDOWN, NETWORKD, NETWORKMANAGER
from .desired import Rail, full_key
from .differences import Difference, State
from .files import KEPT_PROTOCOL, PREFIX
from .rails import Port

Run = Callable[[Sequence[str]], Outcome]

IPV4 = "proc/sys/net/ipv4/conf"
LOCKDOWN = "sys/kernel/security/lockdown"
"""Whether the kernel keeps root from changing the kernel and devices: the mode is in brackets. Source:
security/lockdown/lockdown.c of Linux; pci_write_config asks for LOCKDOWN_PCI_ACCESS, debugfs for LOCKDOWN_DEBUGFS."""

LEAVE_ALONE: Mapping[str, str] = {
    "max_read_request": "rdma_max_read_request: null",
    "relaxed_ordering": "rdma_relaxed_ordering: null",
    "acs_bridges": "rdma_acs: unmanaged",
    "cnp_dscp": "rdma_ecn: unmanaged",
    "cnp_priority": "rdma_ecn: unmanaged",
    "ecn": "rdma_ecn: unmanaged",
}
"""The variables by which an operator excludes settings that a locked kernel refuses."""

SIDES = ("roce_np", "roce_rp")
"""The side that notices marks of congestion, and the side that obeys."""

FOREIGN_ANSWER = "Protocol error"
"""What `dcb` prints if it takes an answer of the kernel for a foreign answer. `dcb` numbers its requests by the second,
and does not read the acknowledgement of its first request. If the second request comes in another second, this
acknowledgement has the wrong number. Source: mnlu_msg_prepare and dcb_set_attribute_attr_cb of iproute2."""

TRIES = 5
"""How often a program is started at most, while it ends with FOREIGN_ANSWER. To make a setting twice does no harm."""

CNP_FILES: Mapping[tuple[str, str], str] = {
    ("debugfs", "cnp_dscp"): "np_cnp_dscp",
    ("debugfs", "cnp_priority"): "np_cnp_prio",
    ("ofed", "cnp_dscp"): "roce_np/cnp_dscp",
    ("ofed", "cnp_priority"): "roce_np/cnp_802p_prio",
}


class SettingError(Exception):
    """A setting could not be made; the message says why."""


def state(root: Path, rail: Rail, port: Port, run: Run) -> State:
    """The settings of a rail that rdma_facts does not have."""
    directory = root / IPV4 / (port.netdev or "")
    return State(
        sysctls={key: sysfs.read_int(directory / key) for key in rail.sysctls or {}},
        rule=has_rule(rail, port.netdev, run) if rail.table is not None and port.netdev else None,
        ipoib_mode=sysfs.read(root / sysfs.NETDEVS / port.netdev / "mode") if port.netdev else None,
        partition_keys=_partitions(root, port.netdev) if port.netdev and rail.partition_keys else None,
    )


def _partitions(root: Path, netdev: str) -> list[str]:
    """The keys of the partitions that have a network device on top of `netdev`."""
    netdevs = root / sysfs.NETDEVS
    children = [name for name in sysfs.names(netdevs) if sysfs.read(netdevs / name / "parent") == netdev]
    numbers = [sysfs.read_int(netdevs / name / "pkey", 16) for name in children]
    return [full_key(number) for number in numbers if number is not None]


def has_rule(rail: Rail, netdev: str, run: Run) -> bool | None:
    """Whether packets from the rail's address leave by the rail; None if unknown."""
    ruled = _ruled(rail, run)
    return ruled and _routed(rail, netdev, run)


def _ruled(rail: Rail, run: Run) -> bool | None:
    """Whether packets from the rail's address use the rail's routing table; None if unknown."""
    source = _source(rail)
    rules = _json(run(["ip", "-j", "-4", "rule", "show", "from", source]))
    if rules is None:
        return None
    return any(rule.get("src") == source and str(rule.get("table")) == str(rail.table) for rule in rules)


def _routed(rail: Rail, netdev: str, run: Run) -> bool:
    """Whether the rail's routing table has the route of the rail."""
    # An empty or missing table is an error of `ip route`.
    routes = _json(run(["ip", "-j", "-4", "route", "show", "table", str(rail.table)])) or []
    return any(route.get("dst") == rail.network and route.get("dev") == netdev for route in routes)


def _json(outcome: Outcome) -> list[dict[str, Any]] | None:
    if outcome.failure or outcome.code:
        return None
    try:
        found = json.loads(outcome.stdout or "[]")
    except ValueError:
        return None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else None


def apply(root: Path, difference: Difference, rail: Rail, port: Port, manager: str, run: Run) -> None:
    """Make one setting. Raises SettingError."""
    setting, netdev = difference.setting, port.netdev or ""
    try:
        if setting in (rail.sysctls or {}):
            _write(root / IPV4 / netdev / setting, str(difference.after))
        elif setting == "address":
            _address(netdev, manager, bool(difference.before), run)
        elif setting == "rule":
            _rule(rail, netdev, manager, run)
        elif setting in ("rdma_cm_tos", "rdma_cm_mode"):
            _rdma_cm(root, port, setting, difference.after, run)
        elif setting in ("max_read_request", "relaxed_ordering"):
            _device_control(root, port, setting, difference.after)
        elif setting == "acs_bridges":
            for address in difference.before:
                _acs_off(root, address)
        elif setting in ("cnp_dscp", "cnp_priority", "ecn"):
            _congestion(root, port, setting, difference.after)
        elif setting == "partition_keys":
            for key in difference.after:
                if key not in difference.before:
                    _run(run, partition(netdev, key))
        elif setting == "ipoib_mode":
            _mode(root / sysfs.NETDEVS / netdev / "mode", str(difference.after))
            if rail.mtu:
                # The kernel changes the MTU with the mode.
                _run(run, command(netdev, "mtu", rail.mtu))
        else:
            _run(run, command(netdev, setting, difference.after))
    except OSError as error:
        reason = f"{error.filename or ''}: {error.strerror or error}"
        raise SettingError(f"{reason}{_locked_down(root, setting, error)}") from error


def _locked_down(root: Path, setting: str, error: OSError) -> str:
    """The reason why the kernel refuses to write a register or a file of debugfs, and what to do; empty if unknown."""
    mode = re.search(r"\[(?!none)(\w+)\]", sysfs.read(root / LOCKDOWN) or "")
    if error.errno != errno.EPERM or mode is None or setting not in LEAVE_ALONE:
        return ""
    return (
        f": the kernel is locked down ({mode[1]} in /{LOCKDOWN}), usually because of Secure Boot, and lets no program "
        f"write this file; switch Secure Boot off in the firmware, or set {LEAVE_ALONE[setting]}"
    )


def _mode(path: Path, mode: str) -> None:
    """Set the mode of IP over InfiniBand. Raises SettingError, OSError."""
    try:
        # The kernel compares the mode with its line end. Source: ipoib_set_mode of Linux.
        _write(path, f"{mode}\n")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise SettingError(
            f"{path}: the driver of this device has no mode {mode}; set rdma_ipoib_mode: datagram, or null"
        ) from error


def partition(netdev: str, key: str) -> list[str]:
    """The command that adds the network device of a partition. Its name is the kernel's: ib0.8001."""
    name = f"{netdev}.{int(key, 16):04x}"
    return ["ip", "link", "add", "link", netdev, "name", name, "type", "ipoib", "pkey", key]


def command(netdev: str, setting: str, value: Any) -> list[str]:
    """The command that makes a setting of a network device."""
    if setting == "mtu":
        return ["ip", "link", "set", "dev", netdev, "mtu", str(value)]
    if setting == "pfc":
        return ["dcb", "pfc", "set", "dev", netdev, "prio-pfc", "all:off", *(f"{priority}:on" for priority in value)]
    if setting == "dscp":
        # `flush` would make mlx5 trust the VLAN's priority; `replace` leaves other entries alone.
        entries = (f"{dscp}:{priority}" for dscp, priority in value.items())
        return ["dcb", "app", "replace", "dev", netdev, "dscp-prio", *entries]
    if setting == "ets":
        return [
            *("dcb", "ets", "set", "dev", netdev, "willing", "off"),
            *("tc-tsa", *(f"{number}:{word}" for number, word in enumerate(value["algorithms"]))),
            *("tc-bw", *(f"{number}:{share}" for number, share in enumerate(value["bandwidth"]))),
            *("prio-tc", *(f"{number}:{one}" for number, one in enumerate(value["classes"]))),
        ]
    raise SettingError(f"no command is known that sets {setting}")


def _address(netdev: str, manager: str, addressed: bool, run: Run) -> None:
    """Let the program that configures the link read its new file. `addressed`: whether the link has other addresses."""
    if manager == NETWORKD:
        _run(run, ["networkctl", "reload"])
        _run(run, ["networkctl", "reconfigure", netdev])
    elif manager == NETWORKMANAGER:
        _run(run, ["nmcli", "connection", "reload"])
        _run(run, ["nmcli", "--wait", "30", "connection", "up", f"{PREFIX}-{netdev}"])
    elif manager == IFUPDOWN:
        if addressed:
            # ifdown takes the link down. A first address does not wait for a drain, so the link must stay up.
            run(["ifdown", "--force", netdev])
        _run(run, ["ifup", "--force", netdev])
    else:
        raise SettingError("no program configures the link; set rdma_network_manager, or add the address yourself")


def _rule(rail: Rail, netdev: str, manager: str, run: Run) -> None:
    """Add the rule and the route by which packets from the rail's address leave by the rail, if they are missing.

    An existing rule stays, whichever program has made it.
    """
    source, table = _source(rail), str(rail.table)
    if not _ruled(rail, run):
        # networkd recognises a rule of its file only if all words are equal.
        protocol = "static" if manager == NETWORKD else KEPT_PROTOCOL
        words = ["from", source, "table", table, "priority", table, "protocol", protocol]
        outcome = run(["ip", "-4", "rule", "add", *words])
        # The program that configures the link can be faster: the rule is there then.
        if (outcome.failure or outcome.code) and not _ruled(rail, run):
            raise SettingError(_failure(["ip", "-4", "rule", "add", *words], outcome))
    if not _routed(rail, netdev, run):
        route = [str(rail.network), "dev", netdev, "src", source, "table", table, "proto", "static"]
        _run(run, ["ip", "-4", "route", "replace", *route])


def _source(rail: Rail) -> str:
    return str(ipaddress.IPv4Interface(rail.address or "").ip)


def _rdma_cm(root: Path, port: Port, setting: str, value: Any, run: Run) -> None:
    """Set a default of connections by rdma_cm. The kernel makes the files with the directory."""
    base = root / settings.RDMA_CM
    if not base.is_dir():
        _run(run, ["modprobe", "rdma_cm"])
    with suppress(FileExistsError):
        os.mkdir(base / port.device)
    name = {"rdma_cm_tos": "default_roce_tos", "rdma_cm_mode": "default_roce_mode"}[setting]
    _write(base / port.device / f"ports/{port.number}" / name, str(value))


def _device_control(root: Path, port: Port, setting: str, value: Any) -> None:
    address = port.pci_address or ""
    register = pci_config.device_control(pci_config.read(root, address))
    if register is None:
        raise SettingError(f"{address}: the registers of PCIe cannot be read")
    if setting == "relaxed_ordering":
        word = register.value & ~pci_config.RELAXED_ORDERING | (pci_config.RELAXED_ORDERING if value else 0)
    else:
        size = pci_config.SIZES.index(value)
        mask = pci_config.SIZE_MASK << pci_config.READ_REQUEST_SHIFT
        word = register.value & ~mask | size << pci_config.READ_REQUEST_SHIFT
    _write_register(root, address, register.offset, word)


def _acs_off(root: Path, address: str) -> None:
    register = pci_config.acs_control(pci_config.read(root, address))
    if register is None:
        raise SettingError(f"{address}: the register of ACS cannot be read")
    _write_register(root, address, register.offset, register.value & ~pci_config.ACS_REDIRECTS)


def _write_register(root: Path, address: str, offset: int, word: int) -> None:
    path = root / pci.DEVICES / address / "config"
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(handle, word.to_bytes(2, "little"), offset)
    except OSError as error:
        # An error of a write names no file.
        error.filename = str(path)
        raise
    finally:
        os.close(handle)


def _congestion(root: Path, port: Port, setting: str, value: Any) -> None:
    known = port.facts["congestion"]
    directory = root / str(known["directory"]).lstrip("/")
    if setting == "ecn":
        for side in SIDES:
            for priority in range(8):
                _write(directory / side / "enable" / str(priority), str(int(priority in value)))
    else:
        _write(directory / CNP_FILES[known["kind"], setting], str(value))


def _write(path: Path, text: str) -> None:
    """Write an attribute of the kernel, which takes a value in one write."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_TRUNC)
    try:
        os.write(handle, text.encode())
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(handle)


def _run(run: Run, words: list[str]) -> None:
    for _attempt in range(TRIES):
        outcome = run(words)
        if not outcome.code or FOREIGN_ANSWER not in outcome.stderr:
            break
    if outcome.failure or outcome.code:
        raise SettingError(_failure(words, outcome))


def _failure(words: Sequence[str], outcome: Outcome) -> str:
    """The command, and why it failed."""
    reason = outcome.message or " ".join(f"{outcome.stderr} {outcome.stdout}".split())[:300]
    return f"{' '.join(words)}: {reason or f'exit status {outcome.code}'}"
