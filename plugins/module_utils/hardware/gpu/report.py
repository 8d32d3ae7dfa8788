# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the report of `nvidia-smi -q -x` of any version. Private to the collection.

Reads by the names of elements, not by the number of the DTD, which stayed 12 while elements were renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from ..pci import normalise
from .models import (
    Clocks,
    Ecc,
    Fabric,
    Gpu,
    MigDevice,
    Pcie,
    Process,
    RemappedRows,
    RetiredPages,
    Unreadable,
    Utilization,
)
from .values import FAILED, LOST, flag, mode, plain, quantity, version, whole, word

Element = ElementTree.Element

ROOT = "nvidia_smi_log"
START = re.compile(rf"<\?xml|<!DOCTYPE|<{ROOT}\b")
END = f"</{ROOT}>"
UNUSED = re.compile(r"<supported_clocks>.*?</supported_clocks>", re.DOTALL)
"""The list of all frequencies of a GPU: nine tenths of a report, and of the time to parse it."""


@dataclass
class Report:
    """The content of a report. For an incomplete report, the GPUs before its end."""

    driver_version: str | None = None
    cuda_version: str | None = None
    gpus: list[Gpu] = field(default_factory=list)
    damage: str | None = None
    """Why the report could not be read completely."""
    remarks: str = ""
    """The output of nvidia-smi before and after the report, such as a warning of a corrupted infoROM."""


def parse(text: str) -> Report:
    """Read a report. Raises nothing: damage is part of the result."""
    start = START.search(text)
    if start is None:
        return Report(damage="the output contains no report", remarks=text.strip())
    body, end, rest = text[start.start() :].partition(END)
    report = Report(remarks="\n".join(part.strip() for part in (text[: start.start()], rest) if part.strip()))
    # Reads each element at its end, so that an incomplete report still gives its first GPUs.
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    attached = None
    try:
        parser.feed(UNUSED.sub("", body) + end)
        parser.close()
    except (ElementTree.ParseError, ValueError) as error:
        report.damage = str(error)
    path: list[str] = []
    for event, element in _events(parser, report):
        if event == "start":
            path.append(element.tag)
            continue
        path.pop()
        if path == [ROOT]:
            if element.tag == "gpu":
                report.gpus.append(_gpu(element))
            elif element.tag in ("driver_version", "kmd_version"):
                report.driver_version = report.driver_version or version(element.text)
            elif element.tag in ("cuda_version", "cuda_umd_version"):
                report.cuda_version = report.cuda_version or version(element.text)
            elif element.tag == "attached_gpus":
                attached = whole(element.text)
    # nvidia-smi lists GPUs by index. If a GPU is missing, the indexes are unknown.
    if attached is None or attached <= len(report.gpus):
        for index, gpu in enumerate(report.gpus):
            gpu.index = index
    return report


def _events(parser: Any, report: Report) -> Iterator[tuple[str, Element]]:
    """The parser's events up to its failure. Then the parser raises the error again, which is recorded as damage."""
    try:
        yield from parser.read_events()
    except (ElementTree.ParseError, ValueError) as error:
        report.damage = report.damage or str(error)


def _gpu(element: Element) -> Gpu:
    def text(path: str) -> str | None:
        return word(element.findtext(path))

    power = _first(element, "gpu_power_readings", "power_readings")
    unreadable = list(_unreadable(element))
    return Gpu(
        uuid=text("uuid"),
        serial=text("serial"),
        minor_number=whole(text("minor_number")),
        name=text("product_name"),
        architecture=text("product_architecture"),
        pci_bus_id=normalise(text("pci/pci_bus_id") or element.get("id") or ""),
        pci_device_id=_pci_id(text("pci/pci_device_id")),
        pci_subsystem_id=_pci_id(text("pci/pci_sub_system_id")),
        lost=any(plain(one.text) == LOST for one in unreadable),
        reported=True,
        pcie=_pcie(element),
        memory_total_mib=whole(text("fb_memory_usage/total"), "MiB"),
        memory_reserved_mib=whole(text("fb_memory_usage/reserved"), "MiB"),
        memory_used_mib=whole(text("fb_memory_usage/used"), "MiB"),
        memory_free_mib=whole(text("fb_memory_usage/free"), "MiB"),
        mig_mode=mode(text("mig_mode/current_mig")),
        mig_mode_pending=mode(text("mig_mode/pending_mig")),
        mig_devices=[_mig_device(device) for device in element.iterfind("mig_devices/mig_device")],
        ecc=_ecc(element),
        retired_pages=_retired_pages(element),
        remapped_rows=RemappedRows(
            correctable=whole(text("remapped_rows/remapped_row_corr")),
            uncorrectable=whole(text("remapped_rows/remapped_row_unc")),
            pending=flag(text("remapped_rows/remapped_row_pending")),
            failure=flag(text("remapped_rows/remapped_row_failure")),
        ),
        recovery_action=_choice(element, "gpu_recovery_action"),
        persistence_mode=mode(text("persistence_mode")),
        compute_mode=text("compute_mode"),
        virtualization_mode=_choice(element, "gpu_virtualization_mode/virtualization_mode"),
        performance_state=text("performance_state"),
        power_draw_w=_watts(power, "instant_power_draw", "power_draw", "average_power_draw"),
        power_limit_w=_watts(power, "current_power_limit", "power_limit"),
        power_limit_requested_w=_watts(power, "requested_power_limit"),
        power_limit_default_w=_watts(power, "default_power_limit"),
        power_limit_min_w=_watts(power, "min_power_limit"),
        power_limit_max_w=_watts(power, "max_power_limit"),
        temperature_c=whole(text("temperature/gpu_temp"), "C"),
        memory_temperature_c=whole(text("temperature/memory_temp"), "C"),
        clocks=Clocks(
            graphics_mhz=whole(text("clocks/graphics_clock"), "MHz"),
            sm_mhz=whole(text("clocks/sm_clock"), "MHz"),
            memory_mhz=whole(text("clocks/mem_clock"), "MHz"),
            graphics_max_mhz=whole(text("max_clocks/graphics_clock"), "MHz"),
            sm_max_mhz=whole(text("max_clocks/sm_clock"), "MHz"),
            memory_max_mhz=whole(text("max_clocks/mem_clock"), "MHz"),
        ),
        throttle_reasons=_throttle_reasons(element),
        utilization=Utilization(
            gpu_percent=whole(text("utilization/gpu_util"), "%"),
            memory_percent=whole(text("utilization/memory_util"), "%"),
        ),
        fabric=Fabric(
            state=text("fabric/state"),
            status=text("fabric/status"),
            clique_id=whole(text("fabric/cliqueId")),
            cluster_uuid=text("fabric/clusterUuid"),
            health=text("fabric/health/summary"),
        ),
        processes=_processes(element),
        vbios_version=text("vbios_version"),
        gsp_firmware_version=text("gsp_firmware_version"),
        unreadable=unreadable,
    )


def _first(element: Element, *names: str) -> Element | None:
    """The first existing child of several names, newer names first."""
    return next((child for child in map(element.find, names) if child is not None), None)


def _choice(element: Element, path: str) -> str | None:
    """A value for which "None" is a meaning: no action, no virtualization."""
    text = (element.findtext(path) or "").strip()
    return "None" if plain(text) == "none" else word(text)


def _pci_id(text: str | None) -> str | None:
    """ "233010DE", device before vendor, in the form of lspci: "10de:2330"."""
    match = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", text or "")
    return f"{match[2]}:{match[1]}".lower() if match else None


def _pcie(element: Element) -> Pcie:
    link = "pci/pci_gpu_link_info"

    def lanes(name: str) -> int | None:
        return whole(element.findtext(f"{link}/link_widths/{name}"), "x")

    return Pcie(
        gen=whole(element.findtext(f"{link}/pcie_gen/current_link_gen")),
        width=lanes("current_link_width"),
        gen_max=whole(element.findtext(f"{link}/pcie_gen/max_link_gen")),
        width_max=lanes("max_link_width"),
    )


def _mig_device(element: Element) -> MigDevice:
    def number(path: str, unit: str = "") -> int | None:
        return whole(element.findtext(path), unit)

    return MigDevice(
        index=number("index"),
        uuid=word(element.findtext("uuid")),
        gpu_instance_id=number("gpu_instance_id"),
        compute_instance_id=number("compute_instance_id"),
        memory_total_mib=number("fb_memory_usage/total", "MiB"),
        memory_used_mib=number("fb_memory_usage/used", "MiB"),
        multiprocessor_count=number("device_attributes/shared/multiprocessor_count"),
        ecc_sram_uncorrectable=_sum(element.find("ecc_error_count/volatile_count"), "sram_uncorrectable"),
    )


def _ecc(element: Element) -> Ecc:
    errors = element.find("ecc_errors")
    volatile = element.find("ecc_errors/volatile")
    aggregate = element.find("ecc_errors/aggregate")

    def state(name: str) -> bool | None:
        return flag(errors.findtext(name)) if errors is not None else None

    return Ecc(
        current=mode(element.findtext("ecc_mode/current_ecc")),
        pending=mode(element.findtext("ecc_mode/pending_ecc")),
        volatile_corrected=_corrected(volatile),
        volatile_uncorrected=_uncorrected(volatile),
        aggregate_corrected=_corrected(aggregate),
        aggregate_uncorrected=_uncorrected(aggregate),
        sram_threshold_exceeded=state("aggregate/sram_threshold_exceeded"),
        channel_repair_pending=state("channel_repair_pending"),
        tpc_repair_pending=state("tpc_repair_pending"),
        unrepairable_memory=state("unrepairable_memory"),
    )


def _corrected(counts: Element | None) -> int | None:
    """Corrected errors. Cards before Turing count single bits, with every driver; later cards count SRAM and DRAM."""
    if counts is not None and counts.find("single_bit") is not None:
        return whole(counts.findtext("single_bit/total"))
    return _sum(counts, "sram_correctable", "dram_correctable")


def _uncorrected(counts: Element | None) -> int | None:
    if counts is not None and counts.find("double_bit") is not None:
        return whole(counts.findtext("double_bit/total"))
    # Turing has one number for SRAM; since Ampere there are two, which add up.
    return _sum(
        counts,
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "dram_uncorrectable",
    )


def _sum(counts: Element | None, *names: str) -> int | None:
    """The sum of the existing counts; None without any."""
    if counts is None:
        return None
    found = [number for name in names if (number := whole(counts.findtext(name))) is not None]
    return sum(found) if found else None


def _retired_pages(element: Element) -> RetiredPages:
    pages = element.find("retired_pages")
    if pages is None:
        return RetiredPages()
    # Some versions have one of these two elements, some have both.
    states = {flag(pages.findtext("pending_retirement")), flag(pages.findtext("pending_blacklist"))} - {None}
    return RetiredPages(
        single_bit=whole(pages.findtext("multiple_single_bit_retirement/retired_count")),
        double_bit=whole(pages.findtext("double_bit_retirement/retired_count")),
        pending=True in states if states else None,
    )


def _watts(readings: Element | None, *names: str) -> float | None:
    """The first reading with a value, in W."""
    if readings is None:
        return None
    return next((watts for name in names if (watts := quantity(readings.findtext(name), "W")) is not None), None)


def _throttle_reasons(element: Element) -> list[str] | None:
    reasons = _first(element, "clocks_event_reasons", "clocks_throttle_reasons")
    if reasons is None or not len(reasons):
        return None
    states = {reason: plain(reason.text or "") for reason in reasons}
    # A virtual GPU has N/A for each reason.
    if not {"active", "not active"} & set(states.values()):
        return None
    active: Iterable[Element] = (reason for reason, state in states.items() if state == "active")
    return [re.sub(r"^clocks_(?:event|throttle)_reasons?_", "", reason.tag) for reason in active]


def _processes(element: Element) -> list[Process] | None:
    """The processes; None if nvidia-smi cannot list them."""
    processes = element.find("processes")
    if processes is None or (not len(processes) and plain(processes.text or "")):
        return None
    return [
        Process(
            pid=whole(info.findtext("pid")),
            type=word(info.findtext("type")),
            name=word(info.findtext("process_name")),
            memory_used_mib=whole(info.findtext("used_memory"), "MiB"),
            gpu_instance_id=whole(info.findtext("gpu_instance_id")),
            compute_instance_id=whole(info.findtext("compute_instance_id")),
        )
        for info in processes.iterfind("process_info")
    ]


def _unreadable(element: Element, path: str = "") -> Iterator[Unreadable]:
    for child in element:
        where = f"{path}{child.tag}"
        if len(child):
            yield from _unreadable(child, f"{where}/")
        elif plain(child.text or "") in FAILED:
            yield Unreadable(where, (child.text or "").strip())
