# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads Prometheus' text format. Private to the collection; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{[^\n]*\})?[ \t]+([^\s#]+)(?:[ \t]+-?[0-9]+)?\s*", re.ASCII)
"""A sample in Prometheus' text format: name, labels, value, perhaps a time. The value is the word after the labels."""


def samples(text: str, wanted: Collection[str]) -> dict[str, float]:
    """The values of some metrics, each summed over its labels. A metric without a finite sample is left out."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#") or not (found := _LINE.fullmatch(line)) or found[1] not in wanted:
            continue
        try:
            value = float(found[2])
        except ValueError:
            continue
        if math.isfinite(value):
            values[found[1]] = values.get(found[1], 0.0) + value
    return values
