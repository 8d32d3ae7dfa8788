# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All collectors of metrics, and how they publish. Private to the collection.

Each collector has its own file and time limit. If a collector fails, its file has only the metrics of that failure: old
numbers would hide it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...core import files
from ...core.exposition import Help, Samples
from ...core.paths import Paths
from ...core.problems import nearest
from ...engine.units.metrics_units import GROUPS
from ...hardware.gpu import facts as gpu_facts
from ...hardware.rdma import facts as rdma_facts
from ...hardware.rdma import priorities
from ..doctor import catalogue, check
from ..doctor.host import TOOL_TIMEOUT, Host
from . import doctor, gpus, rdma, rdma_traffic, recovery, state

SCHEMA = 1

LIMIT = 40.0
"""Limit for a collector, in seconds. The doctor's own limit is 30. The timers start the collectors every 60, and the
doctor every 300."""

HELP: Help = {
    "inference_collector_success": "1 if the collector ended without an error, 0 if it failed.",
    "inference_collector_duration_seconds": "How long the collector took.",
    "inference_collector_timestamp_seconds": "When the collector ended.",
}


@dataclass(frozen=True)
class Collector:
    """`gather` adds samples of the metrics in `help`. Any exception counts as a failure."""

    name: str
    help: Help
    gather: Callable[[Host, Samples], None]


@dataclass(frozen=True)
class Page:
    """The text that a collector publishes. `problem` is empty if the collector succeeded."""

    collector: str
    text: str
    problem: str = ""


def _state(host: Host, samples: Samples) -> None:
    state.render(host.paths, samples)


def _recovery(host: Host, samples: Samples) -> None:
    recovery.render(host.paths, datetime.now(UTC), samples)


def _gpus(host: Host, samples: Samples) -> None:
    parts = (gpu_facts.NVIDIA_SMI,)
    found = gpu_facts.gather(host.root, lambda command: host.run(command, TOOL_TIMEOUT), "nvidia-smi", parts, 0)
    gpus.render(found, host.releases().values(), samples)


def _rdma(host: Host, samples: Samples) -> None:
    # Without programs: sysfs has these facts, and the program `rdma` would load kernel modules.
    parts = (rdma_facts.COUNTERS, rdma_facts.NICS)
    programs = rdma_facts.Programs()
    found = rdma_facts.gather(host.root, parts, programs, lambda command: host.run(command, TOOL_TIMEOUT))
    rdma.render(found, samples)
    rdma_traffic.render(host.paths, found, samples, priorities.counters if host.root == Path("/") else None)


def _doctor(host: Host, samples: Samples) -> None:
    settings = catalogue.read(host.paths)
    doctor.render(check.run(catalogue.chosen((), settings.off), host), samples)


COLLECTORS = {
    one.name: one
    for one in (
        Collector("state", state.HELP, _state),
        Collector("recovery", recovery.HELP, _recovery),
        Collector("gpus", gpus.HELP, _gpus),
        Collector("rdma", {**rdma.HELP, **rdma_traffic.HELP}, _rdma),
        Collector("doctor", doctor.HELP, _doctor),
    )
}


def names(wanted: Sequence[str]) -> list[str]:
    """The collectors of these names or groups; all collectors if no name is given. Raises ValueError."""
    known = {**{name: (name,) for name in COLLECTORS}, **GROUPS}
    wrong = [f"there is no collector {name!r}: {nearest(name, known)}" for name in wanted if name not in known]
    if wrong:
        raise ValueError("; ".join(wrong))
    return list(dict.fromkeys(one for name in wanted for one in known[name])) or list(COLLECTORS)


def collect(one: Collector, host: Host, now: Callable[[], float] = time.time, limit: float = LIMIT) -> Page:
    """Run one collector, within the time limit. Raises nothing."""
    samples = Samples({**one.help, **HELP})
    problem = f"no answer within {limit:g} s"

    def gather() -> None:
        nonlocal problem
        try:
            one.gather(host, samples)
            problem = ""
        except Exception as error:
            problem = str(error) or repr(error)

    began = time.monotonic()
    # A daemon thread, since a thread that hangs in the kernel must not delay the exit.
    thread = threading.Thread(target=gather, daemon=True)
    thread.start()
    thread.join(limit)
    failed = problem
    if failed:
        # Some of the numbers would look like all of them, and a thread that hangs may still add more.
        samples = Samples(HELP)
    samples.add("inference_collector_success", not failed, collector=one.name)
    samples.add("inference_collector_duration_seconds", time.monotonic() - began, collector=one.name)
    samples.add("inference_collector_timestamp_seconds", now(), collector=one.name)
    return Page(one.name, samples.text(), failed)


def publish(paths: Paths, page: Page) -> None:
    """Write a page where node_exporter reads. Raises OSError."""
    files.write(paths.metrics(page.collector), page.text)


def as_json(pages: Sequence[Page]) -> str:
    """The document of `inferctl metrics --json`."""
    return json.dumps({"schema": SCHEMA, "collectors": [asdict(page) for page in pages]}, indent=2)
