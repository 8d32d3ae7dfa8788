# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and judges a result of perftest: from the file of --out_json, or from the output. Private to the collection;
pure.

Version 6.06 (Debian 12) writes names and words without quotes, and commas before brackets. Version 6.24 (Debian 13)
writes JSON. Neither writes a unit, but the table of the output has one. Source: print_full_bw_report and
write_report_lat_to_file of perftest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

LINE = re.compile(r'\s*"?([A-Za-z_0-9. ]*[A-Za-z_0-9.])"?\s*:\s*(.*?),?\s*$')

RESULTS = "results"

HEAD = re.compile(r"^\s*#bytes\s+#iterations\s+(.*)$")
"""The head of a table. Columns have a unit: BW average[Gb/sec], t_typical[usec]."""
COLUMN = re.compile(r"(\S.*?)\[([^\]]+)\]\s*")
ROW = re.compile(r"^\s*([0-9]+)\s+([0-9]+)((?:\s+(?:[0-9.]+|-?inf|-?nan))+)\s*$")
FIELD = re.compile(r"(?:^|\t|\s{2,})\s*(Device|Mtu)\s*:\s*([\w.-]+)")
COLUMNS = {"BW peak": "BW_peak", "BW average": "BW_average", "MsgRate": "MsgRate"}
"""Names of columns in the output, with their names in a file. The columns of a latency have the same names in both."""
UNITS = {"Gb/sec": 1.0, "usec": 1.0, **dict.fromkeys(("MB/sec", "MiB/sec"), 8 * (1 << 20) / 1e9)}
"""The factor from each unit to Gb/s, or to microseconds. MB means MiB here, and newer versions write MiB. Columns with
another unit are left out, such as cycles of the processor (option -C)."""
GPU_WORDS = ("GPU buffer", "CUDA Ctx")
"""The output has one of these words if the test used a GPU's memory. Source: mmap and cuda_memory.c of perftest."""
BOTH_WAYS = "idirectional"
"""Part of the name of a test that adds the bandwidths of both directions: "Bidirectional" or "bidirectional"."""

HEADERS = {"Ethernet": 82, "InfiniBand": 26}
"""Bytes of a packet besides its payload. Ethernet: preamble, gap, Ethernet, IPv4, UDP, BTH, ICRC. InfiniBand: LRH, BTH,
ICRC, VCRC."""

LANE_GBPS = {1: 2.0, 2: 4.0, 3: 8 * 128 / 130, 4: 16 * 128 / 130, 5: 32 * 128 / 130, 6: 64 * 242 / 256}
"""Gb/s of a lane of PCIe by generation, without the line code."""

GOOD, GOOD_GPU = 0.94, 0.9
"""The part of the possible rate that a good rail reaches: from memory of the host, and of a GPU."""

TOO_MUCH = 1.02
"""A larger part of the possible rate is impossible: the number has another unit, or is of another rail."""

NO_CLOCK = "perftest writes 0 or inf if the processor is too busy to measure its clock; run perftest again"
"""Source: sample_get_cpu_mhz of perftest, whose option -F lets a test go on without the clock."""

SMALL, LARGE = 256, 65536
"""Bytes of a message: SMALL is the largest for a latency, LARGE the smallest for a bandwidth. Other results are not
judged. LARGE is the default size of ib_write_bw."""

GOOD_MICROSECONDS, BAD_MICROSECONDS = 3.0, 10.0
"""The time that a message of a few bytes takes, from node to node through one switch, and a time that is a fault."""


@dataclass
class Report:
    """The content of a file of perftest, or of the output of a test."""

    device: str | None = None
    mtu: int | None = None
    """Bytes of payload in a packet."""
    gpu: bool = False
    """Whether the test used the memory of a GPU."""
    both_ways: bool = False
    """Whether the bandwidth is the sum of both directions."""
    unit_known: bool = False
    """Whether bandwidths are in Gb/s for sure. The output has a unit, a file has none."""
    results: list[dict[str, float]] = field(default_factory=list)
    """The numbers of each message size, by their names: BW_average, t_typical, MsgSize, …"""


@dataclass(frozen=True)
class Verdict:
    """What a number means."""

    good: bool | None
    """None if the number cannot be judged; the message says why."""
    message: str


def read(text: str) -> Report:
    """The report in a file, or in the output of a test. Raises ValueError without results."""
    report = _table(text) or _file(text)
    report.results = [one for one in report.results if one]
    if not report.results:
        raise ValueError("not a file of perftest with results: write it with --out_json --out_json_file=FILE")
    return report


def _table(text: str) -> Report | None:
    """The report in the output of a test; None without a table."""
    columns: list[tuple[str, float | None]] = []
    report = Report(unit_known=True, gpu=any(words in text for words in GPU_WORDS))
    for line in text.splitlines():
        if match := HEAD.match(line):
            columns = [(COLUMNS.get(name, name), UNITS.get(unit)) for name, unit in COLUMN.findall(match[1])]
        elif columns and (match := ROW.match(line)):
            numbers = [_number(word) for word in match[3].split()]
            found = {"MsgSize": float(match[1]), "n_iterations": float(match[2])}
            known = zip(columns, numbers, strict=False)
            found.update({name: number * unit for (name, unit), number in known if number is not None and unit})
            report.results.append(found)
        report.both_ways = report.both_ways or (BOTH_WAYS in line and line.rstrip().endswith("Test"))
        for name, value in FIELD.findall(line):
            if name == "Device":
                report.device = value
            elif mtu := _number(value):
                report.mtu = int(mtu)
    return report if columns else None


def _file(text: str) -> Report:
    report = Report()
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        name, value = match[1].strip(), match[2].strip().strip('"')
        if value == "{":
            if name == RESULTS:
                report.results.append({})
        elif report.results:
            number = _number(value)
            if number is not None:
                report.results[-1][name] = number
        elif name == "Device":
            report.device = value or None
        elif name == "Mtu":
            mtu = _number(value)
            report.mtu = int(mtu) if mtu else None
        elif name == "test":
            report.both_ways = BOTH_WAYS in value
        elif name == "cuda_device":
            report.gpu = True
    return report


def possible(rate_gbps: float, mtu: int, link_layer: str, pcie: Mapping[str, int | None] | None = None) -> float:
    """The payload that a rail can carry, in Gb/s. `pcie` has generation and width of the card's link."""
    link = rate_gbps * mtu / (mtu + HEADERS[link_layer])
    gen, width = ((pcie or {}).get(key) for key in ("gen", "width"))
    return min(link, LANE_GBPS[gen] * width) if gen in LANE_GBPS and width else link


def judge(report: Report, limit_gbps: float | None) -> Verdict:
    """What the latency of the smallest messages means, or the bandwidth of the largest. `limit_gbps` is what the rail
    can carry in one direction; None if unknown."""
    latencies = [(_size(one), time) for one in report.results if (time := _time(one))]
    if latencies:
        return _latency(*min(latencies))
    result = max(report.results, key=_size)
    rate = result.get("BW_average", result.get("bw_avg"))
    if not rate:
        return Verdict(None, f"the result has neither bandwidth nor latency: {NO_CLOCK}")
    if 0 < _size(result) < LARGE:
        return Verdict(None, f"{rate:g} with messages of {_size(result):g} bytes: too small; use -s {LARGE} or more")
    if limit_gbps is None:
        condition = "" if report.unit_known else ", if the test ran with --report_gbits"
        return Verdict(None, f"{rate:g} Gb/s{condition}; what the rail can carry is unknown")
    if report.both_ways:
        limit_gbps *= 2
    share = rate / limit_gbps
    shown = f"{rate:g} Gb/s, {share:.0%} of the {limit_gbps:.1f} Gb/s that the rail can carry"
    if share > TOO_MUCH:
        why = "it does not belong to this rail" if report.unit_known else "use --report_gbits"
        return Verdict(None, f"{rate:g} is more than the {limit_gbps:.1f} Gb/s of the rail: {why}")
    if share >= (GOOD_GPU if report.gpu else GOOD):
        return Verdict(True, shown)
    return Verdict(False, f"{shown}{_reason(share, rate)}")


def _size(result: Mapping[str, float]) -> float:
    """Bytes of a message; 0 if unknown."""
    return result.get("MsgSize", 0.0)


def _time(result: Mapping[str, float]) -> float | None:
    """Microseconds of a latency; None for a bandwidth, 0 without a clock. A test with a duration (-D) has only the
    average."""
    return result.get("t_typical", None if "t_min" in result else result.get("t_avg"))


def _latency(size: float, microseconds: float) -> Verdict:
    shown = f"{microseconds:g} microseconds"
    if size > SMALL:
        return Verdict(None, f"{shown} with messages of {size:g} bytes: too large; use -s 8")
    if microseconds >= BAD_MICROSECONDS:
        limit = f"{GOOD_MICROSECONDS:g} through one switch, and 1 more for each further switch"
        return Verdict(False, f"{shown}: a good rail needs fewer than {limit}")
    if microseconds >= GOOD_MICROSECONDS:
        return Verdict(None, f"{shown}: good through several switches, too much for one")
    return Verdict(True, shown)


def _reason(share: float, rate_gbps: float) -> str:
    """The usual cause of so low a rate; empty if there is none."""
    if rate_gbps < 8:
        return ": packets are lost, as without PFC on one side"
    if 0.45 <= share <= 0.55:
        return ": about half, as with ACS, ATS or an IOMMU in the way"
    return ""


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text) else None
