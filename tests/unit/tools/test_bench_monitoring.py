# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make bench` reads out of scrapes, and out of the shell's `time`."""

from __future__ import annotations

import itertools
from typing import Any

import bench_monitoring
import pytest
from nodes import NodeError, Site

SCRAPE = """\
# HELP node_scrape_collector_duration_seconds node_exporter: Duration of a collector scrape.
node_scrape_collector_duration_seconds{collector="systemd"} 0.04
node_scrape_collector_duration_seconds{collector="textfile"} 0.002
inference_drained{name="main"} 0
process_cpu_seconds_total @used
"""


def test_the_rows_have_the_costs_of_monitoring(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = itertools.count()
    # The first scrape warms up, and is not counted. Each scrape costs 30 ms of a processor.
    scrapes = (SCRAPE.replace("@used", f"{number * 0.03:.2f}") for number in counter)
    steps: list[str] = []

    def scrape(_url: str) -> tuple[str, float]:
        steps.append("scrape")
        return next(scrapes), 0.06

    def ssh(_site: Site, _node: str, command: str) -> str:
        steps.append(command.split()[-1])
        return "a collector's words\n0.500 0.100\n" if "inferctl" in command else ""

    monkeypatch.setattr(bench_monitoring, "scrape", scrape)
    monkeypatch.setattr(bench_monitoring, "ssh", ssh)
    site = Site.__new__(Site)
    site.addresses, site.own_address = {"n": "192.0.2.1"}, "192.0.2.9"
    played: list[Any] = []

    def play(name: str, **extra: Any) -> str:
        played.append((name, extra))
        return ""

    rows: dict[str, float] = {}
    bench_monitoring.bench(
        site,
        "n",
        play,
        lambda what, seconds, _ratio: rows.update({what: round(seconds, 4)}),
    )
    assert played == [("playbooks/monitoring.yml", {"monitoring_sources": ["192.0.2.9"]})]
    assert rows == {
        "a scrape of a node, 4 series": 0.06,
        "the part of a scrape that reads the textfiles, 1 series": 0.002,
        "0.20% of a core: a scrape every 15 s": 0.03,
        "1.00% of a core: inferctl metrics node every 60 s": 0.6,
        "0.20% of a core: inferctl metrics doctor every 300 s": 0.6,
    }
    # The textfiles are there before the first scrape.
    assert steps[:3] == [
        "inference-metrics@node.service",
        "inference-metrics@doctor.service",
        "scrape",
    ]


@pytest.mark.parametrize("said", ["", "inferctl: not found", "0.5"])
def test_output_without_a_time_is_an_error(said: str) -> None:
    with pytest.raises(NodeError, match="inferctl metrics"):
        bench_monitoring.processor(said)
