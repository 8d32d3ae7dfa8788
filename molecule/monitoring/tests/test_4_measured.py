# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus' numbers of a load agree with the clients' numbers, and the cost of monitoring is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from faults import slowed
from load import Load, Report
from node import Node, wait_for
from watcher import Watcher

LOAD_SECONDS = 120.0

WINDOW = 300
"""The period of the recording rules' rates."""


SHARE = 0.1
"""The allowed relative difference between Prometheus and the clients."""

CLIENTS = 32
"""More clients than the engine serves at once, so that requests wait in its queue. An engine counts from when its API
server accepts a request. Before that, gateway, server and client take 0.15 s on two busy processors."""


@pytest.fixture
def alone(watcher: Watcher, deb12: Node, deb13: Node) -> Iterator[Node]:
    """The only node that serves, with an engine as slow as for a large model.

    Clients then wait for its tokens, and not for the two processors of the test machine."""
    deb12.run("inferctl drain main --reason test")
    with slowed(deb13, 0.25, 0.02):
        yield deb13
    for node in (deb12, deb13):
        node.run("inferctl undrain main", check=False)
    wait_for("both engines serve", lambda: "InstanceDrained" not in {name for name, _node in watcher.fired()}, 60)


def served(load: Callable[[int], Load]) -> Report:
    """A load with which the engine's queue grows."""
    running = load(CLIENTS).start()
    time.sleep(LOAD_SECONDS)
    return running.stop()


def refused(load: Callable[[int], Load], node: Node) -> Report:
    """A load while no engine serves."""
    node.run("inferctl drain main --reason test")
    running = load(2).start()
    try:
        wait_for("some requests are refused", lambda: len(running.report.failures) >= 15, 60)
    finally:
        report = running.stop()
    return report


@pytest.mark.full
def test_the_recording_rules_agree_with_the_clients_measurements(
    watcher: Watcher, load: Callable[[int], Load], alone: Node
) -> None:
    """The rules' five minutes have only this load: the gateway has no other client. The engine has one other client,
    the probe, with a token every ten seconds."""
    responses = 'sum(haproxy_frontend_http_responses_total{proxy="api"})'
    wait_for("other requests are over", lambda: watcher.value("fleet:inference_requests:rate5m") == 0, WINDOW + 60)
    count = watcher.value(responses)
    report, failed = served(load), refused(load, alone)
    print(report, failed, sep="\n")
    assert not report.failures
    # The gateway may have accepted the first requests before it saw the drain.
    done = report.succeeded + failed.succeeded + len(failed.failures)
    wait_for("Prometheus has all of the load", lambda: watcher.value(responses) - count == done, 30)
    # Rules use other rules, and each group has its own rounds.
    time.sleep(15)
    engine = f'{{node="{alone.name}"}}'
    pairs = {
        "requests/s": (done / WINDOW, "fleet:inference_requests:rate5m"),
        "errors": (len(failed.failures) / done, "fleet:inference_request_errors:ratio_rate5m"),
        "tokens/s": ((report.tokens + failed.tokens) / WINDOW, "fleet:inference_generation_tokens:rate5m"),
        "first token, s": (report.first_token, f"instance:inference_ttft_seconds:mean5m{engine}"),
        "between tokens, s": (report.between_tokens, f"instance:inference_inter_token_seconds:mean5m{engine}"),
    }
    found = {name: (client, watcher.value(expression)) for name, (client, expression) in pairs.items()}
    for name, (client, prometheus) in found.items():
        print(f"{name:<20}{client:>10.4f} measured {prometheus:>10.4f} recorded {prometheus / client - 1:>+8.1%}")
    assert {name: pair for name, pair in found.items() if pair[1] != pytest.approx(pair[0], rel=SHARE)} == {}


def test_monitoring_costs_fewer_than_1000_series_of_a_node(watcher: Watcher) -> None:
    """The test prints the numbers for docs/monitoring.md. Times have no limit, because the machine may be busy."""
    own = 'job="node"'
    figures = {
        "series of a target": "sum by (job, node) (scrape_samples_scraped)",
        "series of textfiles": 'count by (node) ({__name__=~"inference_.+",job="node"})',
        "scrape, s": "avg_over_time(scrape_duration_seconds[5m])",
        "of it textfiles, s": 'avg_over_time(node_scrape_collector_duration_seconds{collector="textfile"}[5m])',
        "of it systemd, s": 'avg_over_time(node_scrape_collector_duration_seconds{collector="systemd"}[5m])',
        "node_exporter, share of a core": f"rate(process_cpu_seconds_total{{{own}}}[5m])",
        "node_exporter, MiB": f"process_resident_memory_bytes{{{own}}} / 2^20",
        "Prometheus, share of a core": 'rate(process_cpu_seconds_total{job="prometheus"}[5m])',
        "Prometheus, MiB": 'process_resident_memory_bytes{job="prometheus"} / 2^20',
    }
    for name, expression in figures.items():
        found = watcher.query(expression)
        assert found, name
        for series in found:
            labels = " ".join(value for key, value in series["metric"].items() if key in ("job", "node"))
            print(f"{name:<32}{labels:<20}{float(series['value'][1]):>10.4g}")
    assert all(float(one["value"][1]) < 1000 for one in watcher.query(f"scrape_samples_scraped{{{own}}}"))
