# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's report as one HTML page, without scripts, fonts or pictures of other origin. Private to the collection;
pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from .plots import Bar, Dots, bars, dots
from .report import BAD, DAY, GOOD, NONE, POOR, Fleet, Instance, Node, Word, ago

SPAN = 30 * DAY
"""The time span of the plot of updates and backups, in seconds."""

MIB_PER_GIB = 1024

STYLE = """\
:root{color-scheme:light dark;--good:#2e7d32;--poor:#c77700;--bad:#c62828;--none:#9aa0a6;--line:#8884}
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p.sum{margin-top:.2rem;opacity:.8}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem;vertical-align:top;
border-bottom:1px solid var(--line)}th{font-weight:600}
td.good{color:var(--good)}td.poor{color:var(--poor)}td.bad{color:var(--bad);font-weight:600}
svg{max-width:100%;height:auto}svg text{font-size:12px;fill:currentColor}svg line{stroke:var(--line)}
svg .good{fill:var(--good)}svg .poor{fill:var(--poor)}svg .bad{fill:var(--bad)}svg .none{fill:var(--none)}
ul{padding-left:1.2rem}code{font-size:.95em}.scroll{overflow-x:auto}
.key{margin-right:1.5rem}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
i.good{background:var(--good)}i.poor{background:var(--poor)}i.bad{background:var(--bad)}i.none{background:var(--none)}
"""

LEGEND = {GOOD: "serving", POOR: "drained, loading, stopped or unknown", BAD: "broken", NONE: "not in use"}


def render(fleet: Fleet) -> str:
    """The page as HTML text."""
    time = fleet.time.strftime("%Y-%m-%d %H:%M UTC")
    sections = [
        _section("Unreachable", _unreachable(fleet)),
        _section("Instances", _table(_INSTANCES, [row for node in fleet.nodes for row in _instances(node)])),
        _section("Needs attention", _notes(fleet)),
        _section("Capacity: GPUs", _capacity(fleet)),
        _section("Capacity: memory of GPUs", _memory(fleet)),
        _section("Health", _health(fleet)),
        _section("Versions that differ", _versions(fleet)),
        _section("Last updates and backups, 30 days", _times(fleet)),
        _section("Nodes", _table(_NODES, [_node(node, fleet.time) for node in fleet.nodes])),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Inference fleet</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Inference fleet</h1>"
        f'<p class="sum">{len(fleet.nodes)} of {len(fleet.nodes) + len(fleet.unreachable)} nodes answered, {time}</p>'
        f"{''.join(sections)}</body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[Word | str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: Word | str) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    return f'<td class="{cell.tone}">{escape(cell.text)}</td>'


def _unreachable(fleet: Fleet) -> str:
    rows = [(Word(name, BAD), why) for name, why in fleet.unreachable.items()]
    return _table(("node", "why"), rows) if rows else ""


_INSTANCES = ("node", "instance", "model", "revision", "release", "verdict", "since", "GPUs", "drained")


def _instances(node: Node) -> list[tuple[Word | str, ...]]:
    return [
        (
            node.name,
            one.name,
            one.model or "-",
            one.revision[:12] or "-",
            Word(f"{one.release or '-'}{', another pending' if one.pending else ''}", POOR if one.pending else NONE),
            one.verdict,
            one.since,
            str(one.gpus or "-"),
            Word(one.drain or "-", POOR if one.drain else NONE),
        )
        for one in node.instances
    ]


_NODES = ("node", "GPUs", "hottest", "power", "driver", "kernel", "Debian", "doctor", "last update", "last backup")


def _node(node: Node, now: datetime) -> tuple[Word | str, ...]:
    gpus, system = node.gpus, node.system
    there, reported = gpus.get("present", 0), gpus.get("reported", 0)
    return (
        node.name,
        Word(str(there) if there == reported else f"{reported} of {there}", NONE if there == reported else BAD),
        "-" if gpus.get("hottest_c") is None else f"{gpus['hottest_c']} °C",
        f"{gpus['power_w']} W" if gpus.get("power_w") else "-",
        str(gpus.get("driver") or "-"),
        str(system.get("kernel") or "-"),
        str(system.get("debian") or "-"),
        node.doctor,
        f"{ago(now, node.updated)} ago" if node.updated else "-",
        node.backup,
    )


def _tone(one: Instance) -> str:
    return POOR if one.drain and one.verdict.tone == GOOD else one.verdict.tone


def _capacity(fleet: Fleet) -> str:
    """A plot of each node's GPUs by the state of the instances that use them."""
    rows = []
    for node in fleet.nodes:
        used = {tone: sum(one.gpus for one in node.instances if _tone(one) == tone) for tone in (GOOD, POOR, BAD)}
        free = max(0, node.gpus.get("present", 0) - sum(used.values()))
        parts = [*((float(number), tone) for tone, number in used.items()), (float(free), NONE)]
        rows.append(Bar(node.name, parts, f"{used[GOOD]} of {sum(used.values()) + free} serve"))
    return (
        bars("GPUs of each node", rows) + _legend() if any(value for row in rows for value, _tone in row.parts) else ""
    )


def _legend() -> str:
    spots = (f'<span class="key"><i class="{tone}"></i>{escape(words)}</span>' for tone, words in LEGEND.items())
    return f"<p>{''.join(spots)}</p>"


def _memory(fleet: Fleet) -> str:
    rows = []
    for node in fleet.nodes:
        # A node reports None if none of its GPUs reports a value.
        total, used = ((node.gpus.get(f"memory_{kind}_mib") or 0) / MIB_PER_GIB for kind in ("total", "used"))
        if total:
            rows.append(Bar(node.name, [(used, GOOD), (total - used, NONE)], f"{used:.0f} of {total:.0f} GiB"))
    return bars("Memory of the GPUs of each node", rows) if rows else ""


def _health(fleet: Fleet) -> str:
    """A plot of how many answers, instances, results of the doctor and backups are good, poor, bad or neutral."""
    instances = [_tone(one) for node in fleet.nodes for one in node.instances]
    doctors = [node.doctor.tone for node in fleet.nodes]
    backups = [node.backup.tone for node in fleet.nodes]
    answers = [GOOD] * len(fleet.nodes) + [BAD] * len(fleet.unreachable)
    rows = []
    for label, tones in (("answer", answers), ("instances", instances), ("doctor", doctors), ("backup", backups)):
        parts = [(float(tones.count(tone)), tone) for tone in (GOOD, POOR, BAD, NONE)]
        rows.append(Bar(label, parts, f"{tones.count(GOOD)} of {len(tones)} good"))
    return bars("Health of the fleet", rows)


def _versions(fleet: Fleet) -> str:
    """A table of the facts that differ between nodes: a row for each value, with its nodes."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in fleet.nodes:
        facts = {"Debian": node.system.get("debian"), "kernel": node.system.get("kernel")}
        facts |= {"driver": node.gpus.get("driver"), "GPUs": ", ".join(node.gpus.get("models", ()))}
        for one in node.instances:
            facts[f"{one.name}: image"] = one.image
            facts[f"{one.name}: model"] = f"{one.model} {one.revision[:12]}".strip()
        for what, value in facts.items():
            if value:
                found[what][str(value)].append(node.name)
    rows = [
        (what, value, f"{len(names)}: {', '.join(names)}")
        for what, values in found.items()
        if len(values) > 1
        for value, names in sorted(values.items(), key=lambda item: -len(item[1]))
    ]
    return _table(("what", "version", "nodes"), rows) if rows else "<p>None: all nodes run the same.</p>"


def _times(fleet: Fleet) -> str:
    rows = []
    for node in fleet.nodes:
        points = []
        for what, time, tone in (("update", node.updated, NONE), ("backup", node.backed_up, node.backup.tone)):
            if time:
                points.append(((fleet.time - time).total_seconds(), tone, f"{what} {ago(fleet.time, time)} ago"))
        rows.append(Dots(node.name, points))
    ticks = [(days * DAY, f"{days} d" if days else "now") for days in (30, 20, 10, 0)]
    words = "<p>Grey: the last update. Coloured: the last backup that succeeded.</p>"
    return dots("Last updates and backups", rows, SPAN, ticks) + words if any(row.points for row in rows) else ""


def _notes(fleet: Fleet) -> str:
    lines = [f"<li><b>{escape(node.name)}</b>: {escape(note)}</li>" for node in fleet.nodes for note in node.notes]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""
