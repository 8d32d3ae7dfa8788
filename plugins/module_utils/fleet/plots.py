# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots as inline SVG. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, ROW = 640, 180, 22
"""Width of a plot, width of its labels, and height of a row, in pixels."""


@dataclass(frozen=True)
class Bar:
    """A bar. Each part has a value and a tone of report.py. `words` is the text after the bar."""

    label: str
    parts: Sequence[tuple[float, str]]
    words: str


@dataclass(frozen=True)
class Dots:
    """Points in time on a line. Each point has an age in seconds, a tone of report.py and a title."""

    label: str
    points: Sequence[tuple[float, str, str]]


def bars(title: str, rows: Sequence[Bar]) -> str:
    """A plot of horizontal bars, scaled by the longest bar."""
    longest = max((sum(value for value, _tone in row.parts) for row in rows), default=0) or 1
    room = WIDTH - LABEL - 150
    body = []
    for index, row in enumerate(rows):
        top, left = index * ROW, float(LABEL)
        body.append(_text(LABEL - 8, top, row.label, "end"))
        for value, tone in row.parts:
            size = room * value / longest
            if size > 0:
                body.append(
                    f'<rect class="{tone}" x="{left:.1f}" y="{top + 3}" width="{size:.1f}" height="{ROW - 8}"/>'
                )
            left += size
        body.append(_text(left + 8, top, row.words))
    return _svg(title, len(rows), body)


def dots(title: str, rows: Sequence[Dots], span: float, ticks: Sequence[tuple[float, str]]) -> str:
    """A plot of points in time. The right edge is now. Points older than `span` seconds are drawn at the left edge."""
    room = WIDTH - LABEL - 20

    def place(age: float) -> float:
        return LABEL + room * (1 - min(max(age, 0.0), span) / span)

    bottom = len(rows) * ROW
    body = []
    for age, words in ticks:
        body.append(f'<line x1="{place(age):.1f}" y1="0" x2="{place(age):.1f}" y2="{bottom}"/>')
        body.append(_text(place(age), bottom, words, "middle"))
    for index, row in enumerate(rows):
        body.append(_text(LABEL - 8, index * ROW, row.label, "end"))
        for age, tone, words in row.points:
            spot = f'cx="{place(age):.1f}" cy="{index * ROW + ROW // 2 - 1}" r="6"'
            body.append(f'<circle class="{tone}" {spot}><title>{escape(words)}</title></circle>')
    return _svg(title, len(rows) + 1, body)


def _text(left: float, top: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{left:.1f}" y="{top + ROW - 8}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(title: str, rows: int, body: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {rows * ROW + 4}" '
        f'width="{WIDTH}">{"".join(body)}</svg>'
    )
