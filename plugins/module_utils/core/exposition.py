# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics as text for node_exporter's textfile collector. Private to the collection; pure.

Source of the form: Prometheus' text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Mapping

Help = Mapping[str, str]
"""The help text of each metric, by name. A metric whose name ends in _total is a counter, any other a gauge."""


class Samples:
    """Samples of declared metrics, sorted by metric in the order of declaration."""

    def __init__(self, help_texts: Help) -> None:
        self._help = help_texts
        self._samples: dict[str, list[str]] = {metric: [] for metric in help_texts}

    def add(self, metric: str, value: float | None, **labels: str) -> None:
        """Add a sample; for the value None, add nothing. Raises KeyError for a metric that is not declared."""
        family = self._samples[metric]
        if value is None:
            return
        named = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        number = f"{value:.3f}".removesuffix(".000")
        family.append(f"{metric}{{{named}}} {number}" if named else f"{metric} {number}")

    def text(self) -> str:
        """The text of the file. Metrics without a sample are left out."""
        lines = []
        for metric, words in self._help.items():
            if self._samples[metric]:
                kind = "counter" if metric.endswith("_total") else "gauge"
                lines += [f"# HELP {metric} {words}", f"# TYPE {metric} {kind}", *self._samples[metric]]
        return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
