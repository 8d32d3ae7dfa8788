# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots as SVG."""

from __future__ import annotations

import re

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.plots import (
    LABEL,
    ROW,
    WIDTH,
    Bar,
    Dots,
    bars,
    dots,
)


def numbers(svg: str, tag: str, *names: str) -> list[tuple[float, ...]]:
    """The attributes of each element of a kind."""
    return [
        tuple(float(re.findall(rf' {name}="([^"]*)"', element)[0]) for name in names)
        for element in re.findall(rf"<{tag} [^>]*>", svg)
    ]


def test_the_longest_bar_has_the_whole_width() -> None:
    svg = bars("GPUs & more", [Bar("a<b", [(3.0, "good"), (1.0, "bad"), (0.0, "none")], "3 of 4"), Bar("c", [], "")])
    room = WIDTH - LABEL - 150
    assert numbers(svg, "rect", "x", "width") == [(LABEL, room * 0.75), (LABEL + room * 0.75, room * 0.25)]
    assert re.findall('<rect class="(\\w+)"', svg) == ["good", "bad"]
    assert 'aria-label="GPUs &amp; more"' in svg and ">a&lt;b</text>" in svg and ">3 of 4</text>" in svg
    assert f'viewBox="0 0 {WIDTH} {2 * ROW + 4}"' in svg


def test_a_value_of_zero_has_no_bar() -> None:
    assert "<rect" not in bars("none", []) + bars("none", [Bar("a", [(0.0, "good")], "")])


def test_now_is_at_the_right_and_older_times_are_at_the_left() -> None:
    row = Dots("a", [(0.0, "good", "now"), (50.0, "bad", "<half>"), (1000.0, "none", "old"), (-5.0, "poor", "ahead")])
    svg = dots("times", [row], 100.0, [(100.0, "100 s"), (0.0, "now")])
    room = WIDTH - LABEL - 20
    places = [LABEL + room, LABEL + room / 2, float(LABEL), LABEL + room]
    assert [place for (place,) in numbers(svg, "circle", "cx")] == places
    assert [place for (place,) in numbers(svg, "line", "x1")] == [LABEL, LABEL + room]
    assert "<title>&lt;half&gt;</title>" in svg and ">100 s</text>" in svg
