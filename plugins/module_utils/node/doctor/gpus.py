# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that no GPU is missing, worn, throttled or cut off. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...core.sizes import counted
from ...hardware.gpu import xid, xid_actions
from ..recovery import gpus as recovery_gpus
from ..recovery import state as recovered
from .check import FAIL, OK, WARN, CannotTell, Check, Finding
from .driver import MISSING_GPUS
from .host import Host

BAD_THROTTLES = {
    "hw_slowdown": "slowed down by the hardware: power or heat",
    "hw_thermal_slowdown": "too hot",
    "hw_power_brake_slowdown": "slowed down by the power supply",
    "sw_thermal_slowdown": "too warm",
}
"""Reasons that are a fault of the machine. Other reasons, such as a power limit or an idle GPU, are no fault. Source:
nvml.h, ClocksEventReasons."""

REMAPPED_LIMIT = 512
"""The highest number of rows of a GPU that may be remapped because of uncorrectable errors. Clouds take a GPU with more
out of use. Source: Azure's and OCI's health checks."""


ALL_DOWN = "all links are inactive"
"""nvidia-smi's message for a GPU whose NVLinks are all down, in lower case. Source: drivers 535 to 610."""


def _gpus(host: Host) -> list[Mapping[str, Any]]:
    """The GPUs that nvidia-smi lists. Raises CannotTell if there are GPUs, and it lists none."""
    found = [gpu for gpu in host.gpus()["gpus"] if gpu["reported"]]
    if host.has_gpus() and not found:
        error = host.gpus()["gpu_driver"]["error"]
        raise CannotTell(error["message"] if error else "nvidia-smi reports no GPU", "nvidia-smi; see dmesg")
    return found


def _name(gpu: Mapping[str, Any]) -> str:
    where = gpu["pci_bus_id"] or gpu["uuid"] or "unknown"
    return f"GPU {where}" if gpu["index"] is None else f"GPU {gpu['index']} ({where})"


def _verdict(fails: list[str], warns: list[str], fine: str, action: str) -> Finding:
    if fails or warns:
        return Finding(FAIL if fails else WARN, "; ".join([*fails, *warns]), action)
    return Finding(OK, fine)


def count(host: Host) -> Finding:
    """nvidia-smi lists all GPUs on the bus, and there are GPUs if instances need them."""
    # GPUs that are for virtual machines, or are switched off, do not belong to the driver.
    gpus = [gpu for gpu in host.gpus()["gpus"] if not gpu["excluded"]]
    if not gpus and host.wants_gpus():
        return Finding(FAIL, "no NVIDIA GPU is on the PCI bus, but instances need one", "reseat it; check the BMC")
    failure = host.gpus()["gpu_driver"]["error"]
    if failure and failure["kind"] in MISSING_GPUS:
        return Finding(FAIL, failure["message"], "drain the node and reboot it; the second time, replace the GPU")
    reported = len(_gpus(host))
    if reported < len(gpus):
        there = f"{counted(len(gpus), 'GPU')} {'is' if len(gpus) == 1 else 'are'} on the bus"
        return Finding(FAIL, f"{there}, nvidia-smi lists {reported}", "see dmesg; reboot")
    return Finding(OK, counted(reported, "GPU") if gpus else "no NVIDIA GPU, and no instance wants one")


def state(host: Host) -> Finding:
    """No GPU needs a reset, and all of nvidia-smi's values can be read."""
    fails, warns = [], []
    for gpu in _gpus(host):
        action = gpu["recovery_action"]
        if action and action != "None":
            fails.append(f"{_name(gpu)} asks for: {action}")
        if gpu["unreadable"]:
            first = gpu["unreadable"][0]
            warns.append(f"{_name(gpu)}: {first['element']} reads {first['text']!r}")
        if gpu["mig_mode_pending"] and gpu["mig_mode_pending"] != gpu["mig_mode"]:
            warns.append(f"{_name(gpu)}: MIG becomes {gpu['mig_mode_pending']} at the next reset")
    return _verdict(fails, warns, "no GPU needs an action", "drain, then nvidia-smi --gpu-reset, or reboot")


def memory(host: Host) -> Finding:
    """The GPUs' memory has few remapped rows and waits for no repair. It has had no uncorrected errors since the driver
    was loaded."""
    fails, warns = [], []
    for gpu in _gpus(host):
        rows, ecc, pages, name = gpu["remapped_rows"], gpu["ecc"], gpu["retired_pages"], _name(gpu)
        if rows["failure"]:
            fails.append(f"{name}: no spare row of memory is left")
        if (rows["uncorrectable"] or 0) > REMAPPED_LIMIT:
            fails.append(f"{name}: {rows['uncorrectable']} rows of memory were remapped")
        if ecc["unrepairable_memory"] or ecc["sram_threshold_exceeded"]:
            fails.append(f"{name}: its memory cannot be repaired")
        if rows["pending"] or pages["pending"]:
            warns.append(f"{name}: a row of memory waits to be remapped")
        if ecc["channel_repair_pending"] or ecc["tpc_repair_pending"]:
            warns.append(f"{name}: a repair waits for a reset")
        if ecc["volatile_uncorrected"]:
            warns.append(f"{name}: {ecc['volatile_uncorrected']} uncorrected errors since the driver was loaded")
    action = "replace the GPU" if fails else "drain the node, then reset the GPU or reboot"
    return _verdict(fails, warns, "no repair is pending, and no error is uncorrected", action)


def xids(host: Host) -> Finding:
    """The kernel's log has no serious XID since the driver was loaded or recovery last reset the GPU, whichever is
    later. A table judges each XID. Failures without an XID count since the driver was loaded."""
    if not host.has_gpus():
        return Finding(OK, "does not apply: there is no NVIDIA GPU")
    found, errors = xid.recent(host.kernel_log())
    resets = _resets(host)
    found = [one for one in found if one.time_s is None or one.time_s > resets.get(one.pci_bus_id or "", -1.0)]
    fails, warns, harmless = [], [], 0
    for number, address, text in dict.fromkeys((one.xid, one.pci_bus_id, one.text) for one in found):
        meaning = xid_actions.meaning(number, text)
        words = f"XID {number} of GPU {address or 'unknown'}: {meaning.words} ({meaning.action})"
        if meaning.action in (xid_actions.RESET, xid_actions.REBOOT, xid_actions.REPLACE):
            fails.append(words)
        elif meaning.action == xid_actions.WATCH:
            warns.append(words)
        else:
            harmless += 1
    fails += [f"GPU {one.pci_bus_id or 'unknown'}: {one.kind}" for one in errors]
    unique_fails, unique_warns = list(dict.fromkeys(fails)), list(dict.fromkeys(warns))
    fine = f"none that matters ({harmless} harmless)" if harmless else "none"
    return _verdict(unique_fails, unique_warns, fine, "drain; reset the GPU or reboot; the second time, replace it")


def _resets(host: Host) -> dict[str, float]:
    """When recovery last reset each GPU, in seconds since boot, by the GPU's address."""
    now = datetime.now(UTC)
    found: dict[str, float] = {}
    for name, release in host.releases().items():
        known = recovered.read(host.paths, name)
        if since := recovery_gpus.last_reset(known, now):
            for gpu in recovery_gpus.used_by(release, host.gpus()["gpus"]):
                found[str(gpu["pci_bus_id"])] = max(since, found.get(str(gpu["pci_bus_id"]), 0.0))
    return found


def _unless_unknown(finding: Finding, values: str, gpus: list[str], action: str) -> Finding:
    """The finding. Raises CannotTell if the finding is ok, but the values of some GPUs are unknown."""
    if finding.status == OK and gpus:
        raise CannotTell(f"{values} of {', '.join(gpus)} are unknown", action)
    return finding


def throttle(host: Host) -> Finding:
    """Neither heat nor the power supply slows a GPU down."""
    found = _gpus(host)
    warns = [
        f"{_name(gpu)}: {words}"
        for gpu in found
        for reason, words in BAD_THROTTLES.items()
        if reason in (gpu["throttle_reasons"] or [])
    ]
    finding = _verdict([], warns, "no GPU is slowed down", "check fans, inlet temperature and power supplies (BMC)")
    unknown = [_name(gpu) for gpu in found if gpu["throttle_reasons"] is None]
    return _unless_unknown(finding, "the throttle reasons", unknown, "nvidia-smi -q -d PERFORMANCE")


def pcie(host: Host) -> Finding:
    """No link has fewer lanes than it could have. The generation does not count: it is lower while a GPU idles."""
    warns, unknown = [], []
    for gpu in _gpus(host):
        width, most = gpu["pcie"]["width"], gpu["pcie"]["width_max"]
        if not width or not most:
            unknown.append(_name(gpu))
        elif width < most:
            warns.append(f"{_name(gpu)}: {width} of {most} PCIe lanes")
    finding = _verdict(
        [], warns, "all lanes are in use", "reseat the card or riser; some slots have fewer lanes by design"
    )
    return _unless_unknown(finding, "the PCIe lanes", unknown, "lspci -vv, as root: LnkCap and LnkSta of each GPU")


def fabric(host: Host) -> Finding:
    """GPUs behind NVSwitches are registered with the fabric. Otherwise, CUDA fails with error 802."""
    gpus = [gpu for gpu in _gpus(host) if (gpu["fabric"]["state"] or "N/A") != "N/A"]
    if not gpus and host.gpus()["nvswitches"]:
        raise CannotTell(
            "there are NVSwitches, but this older driver does not report the GPUs' fabric",
            "install a newer driver: set nvidia_driver_version, and run baremetal.inference.site",
        )
    fails = [
        f"{_name(gpu)}: fabric {gpu['fabric']['state']}, {gpu['fabric']['status']}"
        for gpu in gpus
        if gpu["fabric"]["state"] != "Completed" or gpu["fabric"]["status"] not in (None, "Success")
    ]
    action = "systemctl status nvidia-fabricmanager: its version must be the driver's"
    return _verdict(fails, [], "registered" if gpus else "no NVSwitch", action)


def nvlink(host: Host) -> Finding:
    """All GPUs have as many NVLinks up as the GPU with the most."""
    links: dict[str, int] = {}
    unknown = []
    for gpu in _gpus(host):
        found = gpu["nvlink"]
        if found is None:
            unknown.append(_name(gpu))
        # nvidia-smi prints a message instead of links for a GPU without NVLink, for a divided one (MIG), and for a GPU
        # whose links are all down. Only the last has links.
        elif not found["message"] or ALL_DOWN in found["message"].casefold():
            links[_name(gpu)] = len(found["active"])
    most = max(links.values(), default=0)
    warns = [f"{name}: {active} of {most} NVLinks are up" for name, active in links.items() if active < most]
    fine = f"{most} links each" if most else "no NVLink is in use"
    finding = _verdict([], warns, fine, "nvidia-smi nvlink -s; see dmesg")
    return _unless_unknown(finding, "the NVLinks", unknown, "nvidia-smi nvlink -s")


CHECKS = (
    Check("gpu-count", count),
    Check("gpu-state", state),
    Check("gpu-memory", memory),
    Check("gpu-xids", xids),
    Check("gpu-throttle", throttle),
    Check("gpu-pcie", pcie),
    Check("gpu-fabric", fabric),
    Check("gpu-nvlink", nvlink),
)
