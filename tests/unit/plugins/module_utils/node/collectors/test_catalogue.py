# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectors, their groups, and the page of a collector that fails."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import metrics_units
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors.catalogue import COLLECTORS, Collector
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from ..conftest import write
from .conftest import collect


def test_a_collector_that_fails_or_hangs_publishes_only_the_failure(tmp_path: Path) -> None:
    hangs = threading.Event()

    def break_(_host: Host, samples: Samples) -> None:
        samples.add("inference_half", 1)
        raise RuntimeError("no such luck")

    def hang(_host: Host, samples: Samples) -> None:
        samples.add("inference_half", 1)
        hangs.wait(10)

    try:
        for gather, words in ((break_, "no such luck"), (hang, "no answer within 0.05 s")):
            one = Collector("gpus", {"inference_half": "Half."}, gather)
            page = catalogue.collect(one, Host(Paths(tmp_path)), limit=0.05)
            assert page.problem == words and "inference_half" not in page.text
            assert 'inference_collector_success{collector="gpus"} 0\n' in page.text
    finally:
        hangs.set()


def test_every_timer_starts_a_group_that_exists() -> None:
    units = metrics_units.render()
    assert {name.partition("@")[2].removesuffix(".timer") for name in METRICS_TIMERS} == set(catalogue.GROUPS)
    assert all(f"OnUnitInactiveSec={metrics_units.INTERVALS[name]}\n" in units[name] for name in METRICS_TIMERS)
    assert {one for group in catalogue.GROUPS.values() for one in group} == set(COLLECTORS)


def test_collectors_are_chosen_by_name_or_group_and_an_unknown_name_is_an_error() -> None:
    assert catalogue.names([]) == list(COLLECTORS)
    assert catalogue.names(["gpus", "node"]) == ["gpus", "state", "recovery", "rdma"]
    with pytest.raises(ValueError, match=r"there is no collector 'gpu': .*gpus"):
        catalogue.names(["gpu"])


@pytest.mark.parametrize("name", list(COLLECTORS))
def test_every_collector_succeeds_on_an_empty_node(tmp_path: Path, name: str) -> None:
    write(tmp_path / "etc/inference/doctor.json", '{"schema": 1, "off": ["engine-agent", "system"]}')
    assert f'inference_collector_success{{collector="{name}"}} 1\n' in collect(name, Paths(tmp_path))


def test_a_page_is_published_where_node_exporter_reads(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    page = catalogue.Page("gpus", "inference_gpus_present 0\n")
    catalogue.publish(paths, page)
    assert (paths.textfiles / "inference-gpus.prom").read_text() == page.text
    document = {"collector": "gpus", "text": page.text, "problem": ""}
    assert json.loads(catalogue.as_json([page])) == {"schema": 1, "collectors": [document]}


@pytest.mark.parametrize("group", metrics_units.GROUPS)
def test_a_round_in_which_every_collector_hangs_ends_before_the_limit_of_the_unit(group: str) -> None:
    assert len(metrics_units.GROUPS[group]) * catalogue.LIMIT < metrics_units.TIMEOUT
