# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures what monitoring costs a node: the answer to a scrape, its textfiles, and the collectors that write them.

This machine scrapes the node as a Prometheus would.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from nodes import NodeError, Site

from ansible_collections.baremetal.inference.plugins.module_utils.core.prometheus_text import samples
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units.metrics_units import INTERVALS

SCRAPES = 40
INTERVAL = 15
"""Seconds between two scrapes of a site: the default of monitoring_scrape_seconds."""
PROCESSOR = "process_cpu_seconds_total"
TEXTFILES = re.compile(r'^node_scrape_collector_duration_seconds\{collector="textfile"\} (\S+)$', re.MULTILINE)
# bash's own `time` also counts the processes that the command starts. A collector that fails here shows in its metrics.
USED = "bash -c 'TIMEFORMAT=\"%3U %3S\"; time inferctl metrics {} > /dev/null || true'"

Play = Callable[..., str]
Add = Callable[[str, float, float | None], None]


def bench(site: Site, node: str, play: Play, add: Add) -> None:
    """Measure, and call `add` with each row: name, seconds, ratio. `play` runs a playbook with extra variables."""
    play("playbooks/monitoring.yml", monitoring_sources=[site.own_address])
    groups = {Path(timer).stem.partition("@")[2]: seconds for timer, seconds in INTERVALS.items()}
    for group in groups:
        ssh(site, node, f"systemctl start inference-metrics@{group}.service")
    url = f"http://{site.addresses[node]}:9100/metrics"
    scrape(url)
    texts, seconds = zip(*(scrape(url) for _number in range(SCRAPES)), strict=True)
    series = [line for line in texts[-1].splitlines() if not line.startswith("#")]
    own = [line for line in series if line.startswith("inference_")]
    add(f"a scrape of a node, {len(series)} series", statistics.median(seconds), None)
    add(
        f"the part of a scrape that reads the textfiles, {len(own)} series",
        statistics.median(map(in_textfiles, texts)),
        None,
    )
    first, last = (samples(text, {PROCESSOR})[PROCESSOR] for text in (texts[0], texts[-1]))
    used = [("a scrape", INTERVAL, (last - first) / (SCRAPES - 1))]
    for group, every in groups.items():
        used.append((f"inferctl metrics {group}", every, processor(ssh(site, node, USED.format(group)))))
    for what, every, taken in used:
        add(f"{taken / every:.2%} of a core: {what} every {every} s", taken, None)


def scrape(url: str) -> tuple[str, float]:
    """An exporter's answer, and how long the answer took, in seconds. Raises OSError."""
    began = time.perf_counter()
    # Without a proxy: the nodes are containers of this machine.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=60) as response:
        return response.read().decode(), time.perf_counter() - began


def in_textfiles(text: str) -> float:
    """The seconds that node_exporter took to read the textfiles. Raises NodeError without this number."""
    found = TEXTFILES.search(text)
    if not found:
        raise NodeError("the answer of node_exporter has no time of the collector textfile")
    return float(found[1])


def processor(said: str) -> float:
    """The CPU-seconds that a command has used, from the last line of bash's `time`. Raises NodeError."""
    words = (said.strip().splitlines() or [""])[-1].split()
    try:
        user, system = map(float, words)
    except ValueError:
        raise NodeError(f"inferctl metrics: {said}") from None
    return user + system


def ssh(site: Site, node: str, command: str) -> str:
    """The output of a command on a node. Raises NodeError."""
    argv = ["ssh", *site.ssh_options(), f"root@{site.addresses[node]}", command]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise NodeError(f"{command}: {done.stdout}")
    return done.stdout
