# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder of `inferctl doctor --rdma`: why are packets between nodes slow? Private to the collection.

Each step needs the steps before. So the ladder ends at the first step that finds a fault: later results would mislead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...core.problems import Findings
from ...hardware.rdma import settings, subnet_manager
from ...hardware.rdma.nearness import BELOW_SWITCHES
from ...hardware.rdma_settings import boot, plan, rails
from ...hardware.rdma_settings.desired import Desired
from ...hardware.rdma_settings.variables import ETHERNET, INFINIBAND, Wish
from .check import FAIL, OK, UNKNOWN, WARN, Finding

SCHEMA = 1

PACKET = 4096
"""Bytes of payload in the largest packet of RDMA."""

LARGER: Mapping[str, str] = {
    ETHERNET: "give the network device and the switch an MTU of 4200 or more (rdma_mtu)",
    INFINIBAND: "ibv_devinfo shows max_mtu of the card; raise the MTU of the switch's port, or of the subnet manager",
}
"""How the ports of each link layer get larger packets."""

BY_HAND = (
    "host to host, for each rail: ib_write_bw -d DEVICE -x GID_INDEX --report_gbits --out_json --out_json_file=FILE on "
    "one node, the same with the other node's address on the other; then inferctl rdma judge FILE",
    "with GPU memory: the same from an image with CUDA, with --use_cuda_dmabuf; expect 0.9 of the rate at PIX or PXB",
    "one node: all_reduce_perf -b 8G -e 8G -g 8",
    "two nodes, with NCCL_ALGO=RING: mpirun … all_reduce_perf -b 8G -e 8G >FILE; then inferctl rdma judge FILE",
    "each rail alone: the same test with NCCL_TESTS_SPLIT='MOD 8'; compare busbw with one rail; then all nodes",
)
"""The measurements that an operator makes after the ladder, in their order."""

SIGNATURES = (
    ("exactly half", "ACS, ATS or IOMMU: packets take the way through the CPU"),
    ("the rate of one rail with N rails", "one subnet without routing rules, or NCCL_IB_HCA"),
    ("below 1 GB/s, with peaks", "packets are lost: PFC is missing on one side"),
    ("3 to 8 GB/s", "TCP"),
    ("good alone, bad together", "switches: more queue pairs, or pauses"),
    ("good with perftest, bad with NCCL", "queue pairs, chunks, or the CPU"),
)
"""What a wrong number means. Sources: issues 378, 949 and 2409 of NVIDIA/nccl; 112 and 156 of NVIDIA/nccl-tests."""


@dataclass(frozen=True)
class Step:
    """A step with its result."""

    name: str
    status: str
    message: str
    action: str = ""


def silent_managers(facts: Mapping[str, Any], run: subnet_manager.Run) -> list[str]:
    """The active InfiniBand ports whose subnet manager does not answer."""
    ports = [port for port in rails.ports(facts) if port.layer == INFINIBAND and port.active]
    return [port.name for port in ports if subnet_manager.answers(port.device, port.number, run) is False]


def climb(
    facts: Mapping[str, Any], desired: Desired | None, drift: boot.Report | None, silent: Sequence[str] = ()
) -> list[Step]:
    """The steps up to the first that finds a fault. An unknown result does not end the ladder. `silent` has the ports
    whose subnet manager does not answer.
    """
    found = []
    for name, finding in _steps(facts, desired, drift, silent):
        found.append(Step(name, finding.status, finding.message, finding.action))
        if finding.status in (WARN, FAIL):
            break
    return found


def _steps(
    facts: Mapping[str, Any], desired: Desired | None, drift: boot.Report | None, silent: Sequence[str]
) -> Iterator[tuple[str, Finding]]:
    chosen = _rails(facts, desired)
    yield "rails", _found(chosen, desired)
    yield "links", _links(chosen)
    yield "pcie", _pcie(chosen)
    yield "settings", _drift(drift)
    yield "packets", _packets(chosen)
    yield "gids", _gids(chosen, silent)
    yield "bridges", _bridges(chosen)
    yield "distance", _distance(chosen)
    yield "gpudirect", _gpudirect(facts)


def _rails(facts: Mapping[str, Any], desired: Desired | None) -> list[rails.Port]:
    """The ports of the recorded rails; without recorded rails, all ports."""
    ports = rails.ports(facts)
    if desired is None:
        return ports
    by_key = {port.key: port for port in ports}
    return [by_key[rail.key] for rail in desired.rails if rail.key in by_key]


def _found(chosen: Sequence[rails.Port], desired: Desired | None) -> Finding:
    if desired is not None and len(chosen) < len(desired.rails):
        there = {port.key for port in chosen}
        gone = ", ".join(rail.key for rail in desired.rails if rail.key not in there)
        return Finding(FAIL, f"no device for {gone}", "see dmesg; lspci; modprobe mlx5_ib")
    if not chosen:
        return Finding(FAIL, "this node has no RDMA port", "see lspci; modprobe mlx5_ib; ibv_devices")
    names = ", ".join(port.name for port in chosen)
    return Finding(OK, f"{len(chosen)} {'rails' if desired else 'ports (no rails are recorded)'}: {names}")


def _links(chosen: Sequence[rails.Port]) -> Finding:
    unmanaged = [f"{port.name} is {port.facts['state']}" for port in chosen if port.unmanaged]
    if unmanaged:
        return Finding(FAIL, f"{'; '.join(unmanaged)}: {rails.NO_MANAGER}", "systemctl status opensm, on its node")
    down = [f"{port.name} is {port.facts['state'] or 'unknown'}" for port in chosen if not port.active]
    if down:
        return Finding(FAIL, "; ".join(down), "check cable, transceiver and switch")
    rates = {port.name: port.facts["rate_gbps"] for port in chosen if port.facts["rate_gbps"]}
    slow = [f"{name} runs at {rate:g} Gb/s" for name, rate in rates.items() if rate < max(rates.values())]
    if slow:
        return Finding(WARN, f"{'; '.join(slow)}, others at {max(rates.values()):g}", "reseat or replace the cable")
    return Finding(OK, f"all links are up at {max(rates.values()):g} Gb/s" if rates else "all links are up")


def _pcie(chosen: Sequence[rails.Port]) -> Finding:
    slow = []
    unknown: dict[str, None] = {}
    for port in chosen:
        pcie = port.device_facts.get("pcie") or {}
        for now, most, unit in (("gen", "gen_max", "generation"), ("width", "width_max", "lanes")):
            if not pcie.get(now) or not pcie.get(most):
                unknown[port.name] = None
            elif pcie[now] < pcie[most]:
                slow.append(f"{port.name}: {unit} {pcie[now]} of {pcie[most]}")
    if slow:
        return Finding(WARN, "; ".join(slow), "reseat the card; check the slot in the board's manual")
    if unknown:
        message = f"the PCIe link of {', '.join(unknown)} is unknown"
        return Finding(UNKNOWN, message, "lspci -vv, as root: LnkCap and LnkSta of each card")
    return Finding(OK, "all cards have their full PCIe link")


def _drift(drift: boot.Report | None) -> Finding:
    if drift is None:
        return Finding(UNKNOWN, "no settings are recorded on this node", "set the variables of the role rdma")
    if drift.changes:
        return Finding(WARN, "; ".join(map(str, drift.changes)), "inferctl rdma apply, on the drained node")
    if drift.unknown:
        message = f"settings that cannot be read, and so not be set: {'; '.join(drift.unknown)}"
        return Finding(UNKNOWN, message, "correct the reason, or unset the variable of the role rdma")
    return Finding(OK, "all recorded settings are in force")


def _packets(chosen: Sequence[rails.Port]) -> Finding:
    sizes = {port.name: port.facts["mtu_active"] for port in chosen}
    # Some devices have no larger packets.
    small = [port for port in chosen if (sizes[port.name] or PACKET) < min(PACKET, port.facts["mtu_max"] or PACKET)]
    if small:
        actions = {LARGER[port.layer or ETHERNET]: None for port in small}
        message = "; ".join(f"{port.name}: packets of {sizes[port.name]} bytes" for port in small)
        return Finding(WARN, message, "; ".join(actions))
    if not all(sizes.values()):
        return Finding(UNKNOWN, "the size of packets is unknown", "apt install ibverbs-utils")
    return Finding(OK, f"packets have {' or '.join(map(str, sorted(set(sizes.values()))))} bytes")


def _gids(chosen: Sequence[rails.Port], silent: Sequence[str]) -> Finding:
    lacking = [
        f"{port.name}: {port.facts['recommended_gid_reason'] or 'no GID'}"
        for port in chosen
        if port.layer == ETHERNET and port.facts["recommended_gid_index"] is None
    ]
    if lacking:
        return Finding(WARN, "; ".join(lacking), "give each rail an IPv4 address (rdma_addresses)")
    unmanaged = [port.name for port in chosen if port.layer != ETHERNET and not port.facts["sm_lid"]]
    if unmanaged:
        return Finding(FAIL, f"{', '.join(unmanaged)}: no subnet manager", "set rdma_subnet_manager on one node")
    ended = [f"{port.name}: LID {port.facts['sm_lid']}" for port in chosen if port.name in silent]
    if ended:
        message = f"the subnet manager does not answer ({', '.join(ended)}): ports that come up do not become active"
        return Finding(WARN, message, "systemctl status opensm, on its node; or start the manager of the switch")
    return Finding(OK, "all rails have a GID or a subnet manager")


def _bridges(chosen: Sequence[rails.Port]) -> Finding:
    redirecting = sorted(
        {bridge for port in chosen for bridge in (port.device_facts.get("pcie") or {}).get("acs_bridges") or ()}
    )
    if redirecting:
        return Finding(WARN, f"ACS redirects packets at {', '.join(redirecting)}", "rdma_acs: off; inferctl rdma apply")
    kinds = {(port.device_facts.get("pcie") or {}).get("iommu") for port in chosen} - {None, settings.PASSTHROUGH}
    if kinds:
        found = ", ".join(sorted(map(str, kinds)))
        return Finding(WARN, f"the IOMMU translates addresses ({found})", "iommu=pt in common_kernel_cmdline; reboot")
    return Finding(OK, "neither ACS nor the IOMMU is in the way")


def _distance(chosen: Sequence[rails.Port]) -> Finding:
    far = [
        f"{port.name} is at {port.device_facts['nearest_gpu_distance']}"
        for port in chosen
        if port.device_facts["nearest_gpu_distance"] not in (None, *BELOW_SWITCHES)
    ]
    if far:
        message = f"{'; '.join(far)} from its nearest GPU: NCCL uses no GPUDirect there by default"
        return Finding(WARN, message, "if a measurement is better, set NCCL_NET_GDR_LEVEL: PHB in vllm_environment")
    unknown = [port.name for port in chosen if port.device_facts["nearest_gpu_distance"] is None]
    if unknown:
        message = f"the distance between {', '.join(unknown)} and the GPUs is unknown"
        return Finding(UNKNOWN, message, "nvidia-smi topo -m")
    return Finding(OK, "each rail has a GPU below the same switch")


def _gpudirect(facts: Mapping[str, Any]) -> Finding:
    method, reason = plan.gpudirect(Wish(), plan.Machine(facts), Findings())
    if method == "none":
        return Finding(WARN, f"no GPUDirect: {reason}", "install the open kernel modules (nvidia_driver)")
    return Finding(OK, f"GPUDirect by {method} is possible ({reason}); only NCCL's log or a measurement proves it")


def as_json(steps: Sequence[Step]) -> dict[str, Any]:
    """The document of `inferctl doctor --rdma --json`."""
    return {"schema": SCHEMA, "steps": [asdict(step) for step in steps], "by_hand": list(BY_HAND)}


def as_text(steps: Sequence[Step]) -> str:
    """The ladder for operators."""
    lines = []
    for number, step in enumerate(steps, 1):
        lines.append(f"{number}. {step.status.upper():<7}  {step.name:<9}  {step.message}")
        if step.action:
            lines.append(f"{'':<23}-> {step.action}")
    if steps and steps[-1].status in (WARN, FAIL):
        return "\n".join([*lines, "", "Repair this first: later steps would mislead."])
    known = all(step.status != UNKNOWN for step in steps)
    verdict = "This node is fine so far." if known else "No step found a fault; read what is unknown."
    lines += ["", f"{verdict} Next, measure in this order (most measurements need a second node):"]
    lines += [f"- {line}" for line in BY_HAND]
    lines += ["", "What a wrong number means:", *(f"- {what}: {means}" for what, means in SIGNATURES)]
    return "\n".join(lines)
