# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the output of nccl-tests, such as all_reduce_perf, and judges its result. Private to the collection; pure.

Two forms: the table of any version, also with prefixes of mpirun and lines of NCCL between; and the JSON of the option
-J. Source: writeResultHeader, writeBenchmarkLineBody and writeResultFooter of nccl-tests.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PREFIX = re.compile(r"^[^<#]*<std(?:out|err)>:|^\s*[0-9]+: ")
"""What mpirun writes with --tag-output, also with --timestamp-output, and srun with --label."""

ROW = re.compile(r"^\s*([0-9]+)\s+([0-9]+)\s+([a-z][a-z0-9_]*)\s+(\S.*?)\s*$")
"""Size in bytes, number of elements, type, and the other columns."""

RANK = re.compile(
    r"^#\s+Rank\s+[0-9]+\s+(?:Group\s+([0-9]+)\s)?.*?\bon\s+(\S+)\s+device\s+[0-9]+\s+\[[^\]]*\]\s*(.*?)\s*$"
)
HEAD = re.compile(r"^#\s+size\s+count\b")
BUSBW = "busbw"
WRONG = "#wrong"
"""The column with the number of wrong elements. Older versions have `error`, the largest deviation."""
TIMES = ("time", "cputime")
"""The first column after those of size, type, operation and root."""
USUAL = ["time", "algbw", BUSBW, WRONG] * 2
"""The columns of both ways of a test, for a table without its head."""
BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*([0-9]+)\s+(OK|FAILED)")
AVERAGE = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*([0-9]+(?:\.[0-9]+)?)")
OPERATIONS = {"sum", "prod", "max", "min", "avg", "mulsum"}
TEST = re.compile(r"^#\s*Collective test starting:\s*(\S+)")

LARGEST = 1e18
"""No number of a test reaches it. NaN and Infinity are numbers for Python's reader of JSON."""

LARGE = 1 << 30
"""Bytes: with smaller messages, the start of a message takes too much of its time for a judgement."""

GOOD = 0.9
"""The part of the possible bandwidth that good rails reach with the ring algorithm."""

TOO_MUCH = 1.02
"""A larger part is not a result of the ring algorithm on these rails."""

RING = re.compile("all_?reduce|all_?gather|reduce_?scatter|broadcast|^reduce")
"""Tests in which all rails of a node together carry the bandwidth of each rank (`busbw`)."""


@dataclass(frozen=True)
class Result:
    """The result with a message size. Bandwidths are in GB/s of each rank (`busbw`); None for a way left out."""

    size: int
    """Bytes."""
    out_of_place: float | None
    in_place: float | None
    wrong: float
    """The number of wrong elements, out of place and in place together."""

    @property
    def busbw(self) -> float | None:
        """The better bandwidth."""
        return max((one for one in (self.out_of_place, self.in_place) if one is not None), default=None)


@dataclass
class Report:
    """An output of nccl-tests. None or empty if the output does not show it."""

    test: str | None = None
    operation: str | None = None
    """What a test computes, such as sum; None if it computes nothing."""
    ranks: int = 0
    hosts: list[str] = field(default_factory=list)
    members: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of ranks by host and group. NCCL_TESTS_SPLIT makes several groups, each with its own bandwidth."""
    devices: list[str] = field(default_factory=list)
    """The products of the GPUs."""
    results: list[Result] = field(default_factory=list)
    out_of_bounds: int | None = None
    """The number of results with wrong elements."""
    average: float | None = None
    """GB/s over all sizes: no measure of the network."""


@dataclass(frozen=True)
class Verdict:
    """What a result means. `good` is None if unknown."""

    good: bool | None
    message: str


def read(text: str) -> Report:
    """The report in an output. Raises ValueError if the text is no such output."""
    report = _json(text) if text.lstrip().startswith("{") else _table(text)
    if not report.results:
        raise ValueError("no output of nccl-tests with results")
    return report


def _table(text: str) -> Report:
    report = Report()
    columns = USUAL
    for line in (PREFIX.sub("", line) for line in text.splitlines()):
        if match := ROW.match(line):
            words = match[4].split()
            report.results += _row(int(match[1]), words, columns)
            report.operation = words[0] if words[0] in OPERATIONS else report.operation
        elif HEAD.match(line):
            columns = _columns(line.split()) or columns
        elif match := RANK.match(line):
            _rank(report, match[2], match[3], match[1] or "0")
        elif match := BOUNDS.match(line):
            report.out_of_bounds = int(match[1])
        elif match := AVERAGE.match(line):
            report.average = float(match[1])
        elif match := TEST.match(line):
            report.test = match[1]
    return report


def _columns(words: Sequence[str]) -> list[str]:
    """The columns of the numbers, by the head of a table."""
    start = next((number for number, word in enumerate(words) if word in TIMES), len(words))
    # A timestamp has a blank.
    return [*words[start:], *(["time of day"] if "timestamp" in words else [])]


def _row(size: int, words: Sequence[str], columns: Sequence[str]) -> Iterator[Result]:
    """The result in the words of a row after the type. The operation and the root are missing in some tests."""
    if len(words) < len(columns):
        return
    cells = list(zip(columns, map(_number, words[-len(columns) :]), strict=True))
    bandwidths = [number for name, number in cells if name == BUSBW]
    if len(bandwidths) == 2 and bandwidths != [None, None]:
        # Without the head of a table, the column may be that of an older version, with a deviation far below 1.
        wrong = sum(number for name, number in cells if name == WRONG and number and number >= 1)
        yield Result(size, bandwidths[0], bandwidths[1], wrong)


def _rank(report: Report, host: str, product: str, group: str) -> None:
    report.ranks += 1
    report.members[host, group] += 1
    for known, name in ((report.hosts, host), (report.devices, product)):
        if name and name not in known:
            known.append(name)


def _number(word: str) -> float | None:
    """A number such as 235.26 or 2.14748e+09; None for N/A."""
    return float(word) if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?(e[+-][0-9]{1,3})?", word) else None


def _json(text: str) -> Report:
    """The report of the option -J. Its variables of the environment are left out."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    report = Report()
    for one in _mappings(data.get("results")):
        ways = [_mapping(one.get(way)) for way in ("out_of_place", "in_place")]
        bandwidths = [_plain(way.get("bus_bw")) for way in ways]
        size = _plain(one.get("size"))
        if size is not None and bandwidths != [None, None]:
            wrong = sum(_plain(way.get("nwrong")) or 0.0 for way in ways)
            operation = one.get("redop")
            report.operation = str(operation) if str(operation) in OPERATIONS else report.operation
            report.results.append(Result(int(size), bandwidths[0], bandwidths[1], wrong))
    for device in _mappings(_mapping(data.get("config")).get("devices")):
        host, product = str(device.get("hostname") or ""), str(device.get("device_info") or "")
        _rank(report, host, product, str(device.get("group") or 0))
    bounds = _plain(_mapping(data.get("out_of_bounds")).get("count"))
    report.out_of_bounds = None if bounds is None else int(bounds)
    report.average = _plain(_mapping(data.get("average_bus_bandwidth")).get("bandwidth"))
    arguments = data.get("args")
    if isinstance(arguments, list) and arguments:
        report.test = str(arguments[0]).rpartition("/")[2]
    return report


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(value: Any) -> float | None:
    """A number that JSON has; None for null, for the text nan, and for numbers that are not finite."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < LARGEST:
        return None
    return float(value)


def judge(report: Report, limit: float | None, gpus: int = 1) -> Verdict:
    """What the result with the largest messages means. `limit` is what all rails of a node carry together, in GB/s;
    None if unknown. With fewer than `gpus` GPUs of a node in a group, the test does not use all rails."""
    wrong = report.out_of_bounds or sum(1 for one in report.results if one.wrong)
    if wrong:
        cause = "a GPU, its memory or a link is faulty; run inferctl doctor"
        return Verdict(False, f"results with wrong elements: {wrong}: {cause}")
    largest = max(report.results, key=lambda one: one.size)
    busbw = largest.busbw
    if not busbw:
        return Verdict(None, f"no bandwidth with messages of {largest.size} bytes")
    shown = f"{busbw:g} GB/s with messages of {largest.size / LARGE:g} GiB"
    if largest.size < LARGE:
        return Verdict(None, f"{busbw:g} GB/s with messages of {largest.size} bytes: too small; use -b 8G -e 8G")
    if not (RING.search(report.test) if report.test else report.operation):
        return Verdict(None, f"{shown}: only tests such as all_reduce_perf show what all rails carry together")
    if len(report.hosts) < 2:
        where = "one node" if report.hosts else "unknown nodes"
        return Verdict(None, f"{shown}, on {where}: only a test over several nodes shows the rails")
    members = min(report.members.values())
    if members < gpus:
        return Verdict(
            None, f"{shown}: with {members} GPUs of each node in a group, it does not use all rails; use {gpus}"
        )
    if limit is None:
        return Verdict(None, f"{shown}; what the rails of this node can carry is unknown")
    share = busbw / limit
    shown += f", {share:.0%} of the {limit:.1f} GB/s that the rails of this node carry together"
    if share > TOO_MUCH:
        return Verdict(None, f"{shown}: with NCCL_ALGO=RING, it cannot be more")
    return Verdict(True, shown) if share >= GOOD else Verdict(False, f"{shown}{_reason(busbw, share)}")


def _reason(busbw: float, share: float) -> str:
    """The usual cause of a low bandwidth."""
    if busbw < 1:
        return ": packets are lost, as without PFC on one side"
    if 0.45 <= share <= 0.55:
        return ": about half, as with ACS, ATS or an IOMMU in the way, or with half of the rails"
    if 3 <= busbw <= 8:
        return ": like TCP; see the lines 'Using network' and 'via NET/' with NCCL_DEBUG=INFO"
    return "; it cannot be more than the result on one node"
