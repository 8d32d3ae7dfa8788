# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's report as lines of text. Private to the collection; pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from ..core import table
from ..core.sizes import counted
from .report import BAD, Fleet, Instance, Node, ago

WIDTH = 112
"""Characters of a line. Ansible indents the lines, and they must fit 120 columns."""

HEADER = ("NODE", "INSTANCE", "MODEL", "REL", "VERDICT", "SINCE", "GPUS", "DOCTOR", "UPDATED", "BACKUP")
ELASTIC = ("NODE", "INSTANCE", "MODEL", "BACKUP")
"""Columns that are cut first if a line is too long."""

LEAST = 8
"""The least width of these columns, in characters, before other columns are cut, too."""

NOTES = 40
"""The largest number of notes: with more of them, the table would scroll off the screen."""


def render(fleet: Fleet, width: int = WIDTH) -> list[str]:
    """The lines: totals, the gateways, a row for each instance and each node without instances, and the notes."""
    rows = [HEADER, *(row for node in fleet.nodes for row in _rows(node, fleet))]
    lines = [*textwrap.wrap(_summary(fleet), width), *_gateways(fleet, width), "", *table.lines(fit(rows, width))]
    notes = [f"{name}: UNREACHABLE: {why}" for name, why in fleet.unreachable.items()]
    notes += [f"{node.name}: {note}" for node in fleet.nodes for note in node.notes]
    if notes:
        left = len(notes) - NOTES
        lines += ["", *(cut(note, width) for note in notes[:NOTES])]
        lines += [f"and {left} more: -e format=json, or -e report=fleet.html"] if left > 0 else []
    return lines


def _summary(fleet: Fleet) -> str:
    instances = [one for node in fleet.nodes for one in node.instances]
    gpus = sum(node.gpus.get("present", 0) for node in fleet.nodes)
    amounts = {"node": len(fleet.nodes), "instance": len(instances), "GPU": gpus}
    parts = [counted(number, what) for what, number in amounts.items()]
    count = Counter(one.verdict.text for one in instances)
    parts += [f"{number} {verdict}" for verdict, number in sorted(count.items())]
    drained = sum(bool(one.drain) for one in instances)
    parts += [f"{drained} drained"] if drained else []
    parts += [f"{len(fleet.unreachable)} UNREACHABLE"] if fleet.unreachable else []
    return ", ".join(parts)


def _gateways(fleet: Fleet, width: int) -> list[str]:
    """The gateways, and to how many instances each sends requests. No line if no gateway sends any."""
    count = Counter(name for node in fleet.nodes for one in node.instances for name in one.gateways)
    parts = [f"{name} ({counted(number, 'instance')})" for name, number in sorted(count.items())]
    return [cut(f"gateways: {', '.join(parts)}", width)] if parts else []


def _rows(node: Node, fleet: Fleet) -> list[tuple[str, ...]]:
    updated = ago(fleet.time, node.updated) if node.updated else "-"
    rest = (_gpus(node), _loud(node.doctor.text, node.doctor.tone), updated, node.backup.text)
    if not node.instances:
        return [(node.name, "-", "-", "-", "-", "-", *rest)]
    # Only a node's first row has the cells about the node.
    rows = [(node.name, *_cells(node.instances[0]), *rest)]
    return rows + [("", *_cells(one), "", "", "", "") for one in node.instances[1:]]


def _cells(one: Instance) -> tuple[str, ...]:
    verdict = _loud(one.verdict.text, one.verdict.tone) + (" (D)" if one.drain else "")
    release = "-" if one.release is None else str(one.release)
    return (one.name, one.model or "-", f"{release}{'*' if one.pending else ''}", verdict, one.since or "-")


def _gpus(node: Node) -> str:
    """The number of GPUs, or `reported/present` if some do not report, and the highest temperature."""
    gpus = node.gpus
    if not gpus:
        return "?"
    missing = "" if gpus["reported"] == gpus["present"] else f"{gpus['reported']}/"
    heat = "" if gpus["hottest_c"] is None else f" {gpus['hottest_c']}°C"
    return f"{missing}{gpus['present']}{heat}" if gpus["present"] else "-"


def _loud(text: str, tone: str) -> str:
    return text.upper() if tone == BAD else text


def fit(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Cut cells, the widest column first, until lines have at most `width` characters: first cells of the elastic
    columns, then cells of all columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    elastic = [rows[0].index(name) for name in ELASTIC]
    gaps = 2 * (len(widths) - 1)
    for columns, least in ((elastic, LEAST), (range(len(widths)), 1)):
        while sum(widths) + gaps > width:
            widest = max(columns, key=lambda index: widths[index])
            if widths[widest] <= least:
                break
            widths[widest] -= 1
    return [[cut(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in rows]


def cut(text: str, width: int) -> str:
    """Cut a text to `width` characters. A cut text ends with an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
