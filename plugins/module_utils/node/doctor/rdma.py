# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the RDMA ports: their state, speed, GIDs, drivers and settings, and NCCL's log. Private to the collection."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.commands import Outcome
from ...core.paths import journal_tag, unit_name
from ...core.sizes import counted
from ...engine import environment
from ...hardware.rdma import nccl_log
from ...hardware.rdma.nearness import BELOW_SWITCHES
from ...hardware.rdma_settings import boot
from ...hardware.rdma_settings.rails import NO_MANAGER
from ...hardware.rdma_settings.rails import ports as ports_of
from .check import OK, STATUSES, UNKNOWN, WARN, CannotTell, Check, Finding
from .host import TOOL_TIMEOUT, Host

LINES = "5000"
"""Lines of the journal to read: NCCL prints some hundred for each start, with NCCL_DEBUG=INFO."""

HCA = "NCCL_IB_HCA"
"""The variable with the devices of the rails, which the collection computes."""

NONE = Finding(OK, "does not apply: there is no RDMA device")

Port = tuple[str, Mapping[str, Any]]


def _ports(host: Host) -> Iterator[Port]:
    for device in host.rdma()["rdma_devices"]:
        for port in device["ports"]:
            yield f"{device['name']}/{port['port']}", port


def _is_active(port: Mapping[str, Any]) -> bool:
    return str(port["state"] or "").startswith("ACTIVE")


def ports(host: Host) -> Finding:
    """No port is down. This is only a warning, since a card may have ports without a cable."""
    found = list(_ports(host))
    if not found:
        return NONE
    down = [
        f"{name} is {port['state'] or 'unknown'} ({port['physical_state'] or 'unknown'})"
        for name, port in found
        if not _is_active(port)
    ]
    unmanaged = [port for _name, port in found if port["link_layer"] == "InfiniBand" and port["state"] == "INIT"]
    if unmanaged:
        return Finding(WARN, "; ".join(down), f"{NO_MANAGER}; or switch the check off")
    if down:
        return Finding(WARN, "; ".join(down), "check cable, transceiver and switch; or switch the check off")
    return Finding(OK, f"{counted(len(found), 'port')} {'is' if len(found) == 1 else 'are'} active")


def speed(host: Host) -> Finding:
    """No active InfiniBand port is slower than the fastest. A bad cable has fewer lanes."""
    active = [(name, port) for name, port in _ports(host) if _is_active(port) and port["link_layer"] == "InfiniBand"]
    if not active:
        return Finding(OK, "does not apply: there is no active InfiniBand port")
    unknown = [name for name, port in active if not port["rate_gbps"]]
    fastest = max(port["rate_gbps"] or 0.0 for _name, port in active)
    slow = [
        f"{name} runs at {port['rate_gbps']:g} Gb/s, the fastest at {fastest:g}"
        for name, port in active
        if port["rate_gbps"] and port["rate_gbps"] < fastest
    ]
    if slow:
        return Finding(WARN, "; ".join(slow), "reseat or replace the cable; see ibstat and the switch")
    if unknown:
        raise CannotTell(f"the speed of {', '.join(unknown)} is unknown", "ibstat")
    return Finding(OK, "all InfiniBand ports are equally fast")


def gids(host: Host) -> Finding:
    """RoCE ports have a GID that NCCL can use."""
    roce = [(name, port) for name, port in _ports(host) if port["link_layer"] == "Ethernet" and _is_active(port)]
    lacking = [
        f"{name}: {port['recommended_gid_reason'] or 'no GID'}"
        for name, port in roce
        if port["recommended_gid_index"] is None
    ]
    if lacking:
        return Finding(WARN, "; ".join(lacking), "give the network device an IPv4 address, or switch the check off")
    if not roce:
        return Finding(OK, "does not apply: there is no RoCE port")
    return Finding(OK, f"{counted(len(roce), 'RoCE port')} {'has' if len(roce) == 1 else 'have'} a GID")


def drivers(host: Host) -> Finding:
    """On a node with an RDMA device, every network card that can do RDMA has its driver."""
    if not host.rdma()["rdma_devices"]:
        return NONE
    if lacking := host.rdma()["rdma_nics_without_driver"]:
        named = ", ".join(str(nic.get("pci_address") or nic) for nic in lacking)
        return Finding(WARN, f"cards without their RDMA driver: {named}", "modprobe mlx5_ib; see dmesg")
    return Finding(OK, "every card has its driver")


def settings(host: Host) -> Finding:
    """The rails have the settings that the last run has recorded."""
    try:
        recorded = boot.read(host.paths)
    except ValueError as error:
        return Finding(WARN, str(error), "run baremetal.inference.site")
    if recorded is None:
        return Finding(OK, "does not apply: no rails are recorded")

    def run(command: Sequence[str]) -> Outcome:
        return host.run(command, TOOL_TIMEOUT)

    facts = boot.gather(host.root, run)
    report = boot.settle(host.root, recorded, facts, run, busy=False, check=True)
    if report.missing:
        return Finding(WARN, f"no device for {', '.join(report.missing)}", "see dmesg and lspci")
    if report.changes:
        return Finding(WARN, "; ".join(map(str, report.changes)), "inferctl rdma apply; drain the node for MTU and PFC")
    rest = f", except what cannot be set: {'; '.join(report.unknown)}" if report.unknown else ""
    return Finding(OK, f"rails with their settings: {len(recorded.rails)}{rest}")


def nccl(host: Host) -> Finding:
    """The engines of gangs use the rails, and GPUDirect, by their own log."""
    # An engine on CPUs does not use NCCL.
    on_gpus = {name: release for name, release in host.releases().items() if release.accelerator == "nvidia"}
    members = sorted(name for name, release in on_gpus.items() if release.gang is not None)
    if not members:
        return Finding(OK, "does not apply: no engine on GPUs runs over several nodes")
    gone = sorted({device for name in members for device in _renamed(host, name)})
    if gone:
        message = f"{HCA} of {', '.join(members)} has {', '.join(gone)}, and this node has no such device"
        return Finding(WARN, message, "names of devices changed: stop the gang, and run baremetal.inference.site")
    found = [(name, _nccl_of(host, name)) for name in members]
    worst = max((verdict.status for _name, verdict in found), key=STATUSES.index)
    words = "; ".join(f"{name}: {verdict.message}" for name, verdict in found)
    action = next((verdict.action for _name, verdict in found if verdict.status == worst), "")
    # NCCL names its network only with NCCL_DEBUG=INFO, which is not for daily use: that is no fault of the node.
    return Finding(OK if worst == UNKNOWN else worst, words, action)


def _renamed(host: Host, name: str) -> list[str]:
    """The devices in the environment of an instance that this node does not have. A new version of rdma-core may give
    devices other names at a boot, and NCCL then uses TCP."""
    named = environment.read(host.paths, name).get(HCA, "").removeprefix("=").split(",")
    there = {f"{port.device}:{port.number}" for port in ports_of(host.rdma())}
    return [device for device in named if device and device not in there]


def _started(host: Host, name: str) -> str:
    """The option of journalctl for the lines since the last start of an engine; for this boot if its start is unknown.
    Faults of an earlier start may be mended."""
    options = ("--timestamp=unix", "--value", "--property=ExecMainStartTimestamp")
    outcome = host.run(("systemctl", "show", *options, unit_name(name)), TOOL_TIMEOUT)
    match = re.fullmatch(r"@([1-9][0-9]*)", outcome.stdout.strip())
    return f"--since=@{match[1]}" if match and not outcome.code else "--boot"


def _nccl_of(host: Host, name: str) -> nccl_log.Verdict:
    """What NCCL said since the last start of the engine. Raises CannotTell."""
    since = _started(host, name)
    command = ("journalctl", "--quiet", "-t", journal_tag(name), since, "-o", "cat", "-g", "NCCL", "-n", LINES)
    outcome = host.run(command, TOOL_TIMEOUT)
    # journalctl -g exits with 1 if no line matches.
    if outcome.failure or (outcome.code and (outcome.code != 1 or outcome.stderr.strip())):
        words = outcome.message or f"journalctl: {outcome.stderr.strip() or outcome.code}"
        raise CannotTell(words, f"run as root: {shlex.join(command)}")
    try:
        recorded = boot.read(host.paths)
    except ValueError as error:
        raise CannotTell(str(error), "run baremetal.inference.site") from error
    expected = []
    near = True
    if recorded is not None:
        keys = {rail.key for rail in recorded.rails}
        rails = [port for port in ports_of(host.rdma()) if port.key in keys]
        expected = [f"{port.device}:{port.number}" for port in rails]
        near = all(port.device_facts["nearest_gpu_distance"] in (None, *BELOW_SWITCHES) for port in rails)
    return nccl_log.verdict(nccl_log.read(outcome.stdout.splitlines()), expected, near)


CHECKS = (
    Check("rdma-ports", ports),
    Check("rdma-speed", speed),
    Check("rdma-gids", gids),
    Check("rdma-drivers", drivers),
    Check("rdma-settings", settings),
    Check("rdma-nccl", nccl),
)
