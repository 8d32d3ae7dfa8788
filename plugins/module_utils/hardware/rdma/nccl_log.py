# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads NCCL's log: which network it uses, and whether NICs reach GPU memory. Private to the collection; pure.

The messages are those of NCCL 2.4 to 2.31. NCCL prints them at the start of a communicator, with NCCL_DEBUG=INFO.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NCCL = re.compile(r"\bNCCL (?:INFO|WARN|version)\b")

VERSION = re.compile(r"\bNCCL version ([0-9]+(?:\.[0-9]+)+)")

NETWORK = re.compile(r"\bUsing network (\S.*?)\s*$|\bAssigned NET plugin (\S.*?) to comm\b")
"""The network that NCCL has chosen. Before the second message, NCCL may try other networks."""

DEVICES = re.compile(r"\bNET/IB ?: Using (.*)$")
DEVICE = re.compile(r"\[[0-9]+\] ?([\w.-]+):([0-9]+)(?:/(\w+))?")
"""A device. NCCL 2.21 to 2.23 write the ports of one card as [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}."""
RELAXED = "[RO]"

STAGED = re.compile(r"\bNET/IB[^:]*: GPU Direct RDMA Disabled for HCA [0-9]+ '([^']+)'")
"""A device that does not reach GPU memory at all. The same words with a GPU and a distance concern one pair only."""

CHANNEL = re.compile(
    r"\b(?:Channel|Ring|Tree) [0-9]+(?:/[0-9]+)? ?: \d+(?:\[[\w.]+\])? ->? \d+(?:\[[\w.]+\])? \[(?:send|receive)\] "
    r"via NET/([^/\n]+)/[0-9]+(\S*)"
)
"""A channel over the network. The number in brackets is the GPU's index, or in old versions its bus. After the number
of the network device, (3) is another rank that sends for this rank (PXN), /GDRDMA or /GDRDMA(PCI) is GPUDirect."""

PORT = re.compile(r"\bNET/IB ?: (?:(\S+:[0-9]+) )?Got (?:non-fatal )?async (?:error )?event ?: port (error|active)\b")
"""A port that went down under a running engine, or came back. Old versions do not name the port."""

SUMMARY = re.compile(r"\bConnected all rings\b.*\bGDR ([01])\b")

IB, SOCKET = "IB", "Socket"

OK, UNKNOWN, WARN, FAIL = "ok", "unknown", "warn", "fail"

RAISE_MEMLOCK = (
    "set memlock: '-1' in vllm_ulimits, or in the instance's ulimits; then run baremetal.inference.update_model"
)
"""The next step if a container may not lock enough memory."""


@dataclass(frozen=True)
class Fault:
    """A message of NCCL about a fault. `meaning` and `action` are for an operator."""

    kind: str
    meaning: str
    action: str


FAULTS: Sequence[tuple[re.Pattern[str], Fault]] = (
    (
        re.compile(r"NET/IB ?: No device found|No IB devices? found"),
        Fault(
            "no_device",
            "NCCL found no RDMA device",
            "check, in this order: /dev/infiniband in the container, the ports, NCCL_IB_HCA, memlock, NCCL_IB_DISABLE",
        ),
    ),
    (
        re.compile(r"Failed to open libibverbs"),
        Fault("no_library", "the engine's image has no libibverbs", "use an image with the package libibverbs1"),
    ),
    (
        re.compile(r"status=(?:IBV_WC_RETRY_EXC_ERR\()?12\b|\berror 12\b|RETRY_EXC_ERR"),
        Fault(
            "path_dead",
            "packets to a peer were not answered",
            "check that the peer's engine runs, its GID, and the access lists and pauses of the switch. If this fault "
            "comes right after a start, the network does not carry RoCE",
        ),
    ),
    (
        re.compile(r"status=(?:IBV_WC_RNR_RETRY_EXC_ERR\()?13\b|\berror 13\b|RNR_RETRY_EXC"),
        Fault("peer_slow", "a peer had no buffer for packets", "check the engine of the peer: it hangs, or has ended"),
    ),
    (
        re.compile(r"status=(?:IBV_WC_REM_ACCESS_ERR\()?10\b|\berror 10\b|REM_ACCESS_ERR"),
        Fault("access", "a peer refused access to its memory", "use one version of driver and NCCL on all nodes"),
    ),
    (
        re.compile(r"(?:ibv_create_qp|ibv_reg_mr\w*)\b.*(?:failed|Cannot allocate memory)|Cannot allocate memory"),
        Fault("memlock", "NCCL could not lock memory", RAISE_MEMLOCK),
    ),
    (
        re.compile(r"incompatible devices"),
        Fault("mixed", "an InfiniBand port met a RoCE port", "set rdma_link_layer, or list the rails (rdma_rails)"),
    ),
    (
        re.compile(r"GID table change"),
        Fault(
            "gid_changed",
            "an address of a rail changed under a running engine",
            "restart the engine; find the program that changed the address",
        ),
    ),
    (
        re.compile(r"async fatal event|async event ?: local catastrophic error"),
        Fault(
            "device_failed",
            "an RDMA device, or one of its queues, failed under a running engine",
            "look at the kernel's log for the device, then restart the engine",
        ),
    ),
    (
        re.compile(r"mismatched physical devices"),
        Fault("rails_differ", "the rails of the nodes differ", "compare inferctl rdma show on all nodes"),
    ),
    (
        re.compile(r"no socket interface found|Bootstrap ?: no socket"),
        Fault(
            "no_interface",
            "NCCL_SOCKET_IFNAME names no interface of this node",
            "check inference_fabric_address, or inference_address without it",
        ),
    ),
    (
        re.compile(r"Failed to initialize any NET plugin"),
        Fault("required", "RDMA is required (NCCL_NET=IB), but NCCL could not use it", "see the lines before"),
    ),
)
"""Sources: transport/net_ib of NCCL; issues 426, 1277 and 1537 of NVIDIA/nccl."""

CAUSES = {"no_device", "no_library"}
"""Faults after which NCCL uses TCP."""


@dataclass
class Log:
    """The content of NCCL's log. None or empty if the log does not show it."""

    lines: int = 0
    """Lines of NCCL, of any content."""
    version: str | None = None
    network: str | None = None
    """IB, Socket, or the name of a plugin."""
    devices: list[str] = field(default_factory=list)
    """Device and port, such as mlx5_0:1."""
    layers: list[str] = field(default_factory=list)
    """IB or RoCE."""
    relaxed_ordering: bool | None = None
    channels: dict[str, int] = field(default_factory=dict)
    """The number of ends of channels by their network: IB, Socket, or the name of a plugin."""
    gpudirect: int = 0
    """The number of ends of channels with GPUDirect."""
    gpudirect_summary: bool | None = None
    """The summary after all rings are connected. False if one group of GPUs has no GPUDirect."""
    down: list[str] = field(default_factory=list)
    """Ports that went down under the running engine, and did not come back."""
    staged: list[str] = field(default_factory=list)
    """Devices that do not reach GPU memory, as NCCL reports before its first channel."""
    faults: dict[str, int] = field(default_factory=dict)
    """The number of lines by the kind of fault."""


def read(lines: Iterable[str]) -> Log:
    """Read the log of one start of an engine, also with lines of other programs."""
    found = Log()
    staged: dict[str, None] = {}
    down: dict[str, None] = {}
    devices: dict[str, str] = {}
    channels: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for line in lines:
        if not NCCL.search(line):
            continue
        found.lines += 1
        if match := VERSION.search(line):
            found.version = match[1]
        if match := NETWORK.search(line):
            found.network = match[1] or match[2]
        if match := PORT.search(line):
            port = match[1] or "a port"
            if match[2] == "error":
                down[port] = None
            else:
                down.pop(port, None)
        if match := STAGED.search(line):
            staged[match[1]] = None
        if match := DEVICES.search(line):
            found.relaxed_ordering = RELAXED in match[1]
            devices.update({f"{name}:{port}": layer for name, port, layer in DEVICE.findall(match[1])})
        if match := CHANNEL.search(line):
            channels[_network(match[1])] += 1
            found.gpudirect += "GDRDMA" in match[2]
        if match := SUMMARY.search(line):
            # The summary of a group within a node has 1, because the group needs no network.
            found.gpudirect_summary = match[1] == "1" and found.gpudirect_summary is not False
        for pattern, fault in FAULTS:
            if pattern.search(line):
                faults[fault.kind] += 1
                break
    found.devices, found.layers = list(devices), sorted(set(filter(None, devices.values())))
    found.channels, found.faults = dict(channels), dict(faults)
    found.staged, found.down = list(staged), list(down)
    return found


def _network(name: str) -> str:
    """The network of a channel: a plugin for InfiniBand counts as InfiniBand."""
    return IB if name.startswith("IB") else name


ASK = (
    "set NCCL_DEBUG: INFO and NCCL_DEBUG_SUBSYS: 'INIT,NET' in vllm_environment, swap the engine once, and run the"
    " doctor again"
)


@dataclass(frozen=True)
class Verdict:
    """Whether an engine uses RDMA as planned."""

    status: str
    message: str
    action: str = ""


def verdict(found: Log, expected: Sequence[str] = (), near: bool = True) -> Verdict:
    """Whether NCCL uses RDMA, and whether NICs reach GPU memory (GPUDirect).

    `expected` are the rails of the plan, such as mlx5_0:1. `near`: whether each GPU has a rail at PIX or PXB, where
    GPUDirect is NCCL's default.
    """
    network = _name(found)
    fault = _fault(found)
    if fault is not None:
        return Verdict(FAIL, f"{fault.meaning}{_by(network)}", fault.action)
    if network is None and not found.down:
        message = "NCCL printed nothing" if not found.lines else "NCCL did not name its network"
        return Verdict(UNKNOWN, message, ASK)
    if network == SOCKET or (expected and SOCKET in found.channels):
        return _tcp(found, expected)
    missing = sorted(set(expected) - set(found.devices)) if found.devices else []
    if missing:
        return Verdict(
            WARN,
            f"NCCL does not use {', '.join(missing)}{_by(network)}",
            "check its port, and NCCL_IB_HCA of the engine",
        )
    if found.down:
        message = f"{', '.join(found.down)} went down under the running engine, and did not come back"
        return Verdict(WARN, f"{message}{_by(network)}", "check cable, transceiver and switch")
    return _gpudirect(found, network or "", near)


def _tcp(found: Log, expected: Sequence[str]) -> Verdict:
    """The answer if all channels, or some, use TCP."""
    if not expected:
        return Verdict(OK, "NCCL uses TCP")
    total, tcp = sum(found.channels.values()), found.channels.get(SOCKET, 0)
    share = f" on {tcp} of {total} channels" if tcp < total else ""
    cause = next((fault for _pattern, fault in FAULTS if fault.kind in CAUSES & found.faults.keys()), None)
    reason = f": {cause.meaning}" if cause else ""
    action = (cause or FAULTS[0][1]).action
    return Verdict(FAIL, f"NCCL uses TCP{share}; expected were {', '.join(expected)}{reason}", action)


def _gpudirect(found: Log, network: str, near: bool) -> Verdict:
    total = sum(found.channels.values())
    if not total and found.gpudirect_summary is None and not found.staged:
        return Verdict(OK, f"NCCL uses {network}; its log does not show whether it uses GPUDirect", ASK)
    # The summary of a group within a node has GDR 1 even if no device reaches GPU memory.
    if found.gpudirect == total and (total or (found.gpudirect_summary and not found.staged)):
        return Verdict(OK, f"NCCL uses {network} with GPUDirect on all {total or ''} channels".replace("  ", " "))
    if total:
        share = f"with GPUDirect on {found.gpudirect} of {total} channels"
    else:
        share = "without GPUDirect" + (f" on {', '.join(found.staged)}" if found.staged else "")
    if near:
        return Verdict(
            WARN,
            f"NCCL uses {network} {share}",
            "check inferctl doctor --rdma: open kernel modules, ACS, distance of NICs",
        )
    return Verdict(OK, f"NCCL uses {network} {share}, as it does where NIC and GPU have no common switch")


def _name(found: Log) -> str | None:
    """The network that carries the traffic. Channels prove more than the name at the start."""
    if found.channels:
        return max(found.channels, key=lambda name: found.channels[name])
    if found.network is None:
        return None
    return _network(found.network)


def _fault(found: Log) -> Fault | None:
    """The worst fault: the first in the table. Causes of TCP are left out: TCP may be the plan."""
    for _pattern, fault in FAULTS:
        if fault.kind in found.faults and fault.kind not in CAUSES:
            return fault
    return None


def _by(network: str | None) -> str:
    return f" (network {network})" if network else ""
