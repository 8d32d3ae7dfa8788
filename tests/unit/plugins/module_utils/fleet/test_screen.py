# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet as a screen of text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import table
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import screen
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import read

from .conftest import FLEET, NOW, instance, node


def lines(reported: dict[str, Any], width: int = screen.WIDTH) -> list[str]:
    return screen.render(read(reported, NOW), width)


def test_each_instance_has_a_row() -> None:
    reported = lines(FLEET)
    assert reported[0] == "2 nodes, 3 instances, 8 GPUs, 2 healthy, 1 hung, 1 drained, 2 UNREACHABLE"
    rows = {tuple(line.split()[:2]): line for line in reported}
    assert re.search(r"main +tiny-a +3 +healthy +2d +4 61°C +ok +3d +9h$", rows["gpu1", "main"])
    assert "healthy (D)" in rows["side", "tiny-a"]
    assert re.search(r"tiny-b +3\* +HUNG +40s +4 61°C +FAIL +- +none$", rows["gpu2", "main"])
    text = "\n".join(reported)
    for words in (
        "gpu3: UNREACHABLE: Failed to connect to the host via ssh: no route",
        "gpu4: UNREACHABLE: sudo: a password is required",
        "gpu1: side is drained by ada@ops, until undrained: new fan",
        "gpu2: main: release 4 is pending: run baremetal.inference.update_model to swap to it",
        "gpu2: baremetal.inference.update_model has left its lock (by bob on ops, since 2026-05-01T11:00:00Z)",
        "gpu2: a reboot is due",
        "gpu2: rail 0 (rocep65s0f0/1): mtu: 1500 -> 9000 waits for a drain: run baremetal.inference.maintenance",
        "gpu2: doctor: fail: gpu-count: 3 of 4",
    ):
        assert words in text


def test_the_gateways_that_send_requests_are_named() -> None:
    asks = [
        {"name": "gw1", "answer": "up", "seconds": 0.4},
        {"name": "gw2", "answer": "drain", "seconds": 0.2},
        {"name": "gw3", "answer": "", "seconds": None},
        {"name": "gw4", "answer": "up", "seconds": 60.0},
    ]
    both = {name: node(instance(gateways=asks), instance("side", gateways=asks[:1])) for name in ("gpu1", "gpu2")}
    assert lines(both)[1] == "gateways: gw1 (4 instances)"
    silent = [line for line in lines(both) if "does not check" in line]
    why = "the gateway has stopped, or does not reach this node"
    assert silent == [
        f"{name}: gateway {gateway} does not check main: {why}"
        for name in ("gpu1", "gpu2")
        for gateway in ("gw3", "gw4")
    ]
    assert "gateways" not in "\n".join(lines({"gpu1": node(instance())}))


@pytest.mark.parametrize("length", [5, 80])
def test_no_line_is_too_wide(length: int) -> None:
    """With long names, the widest columns are cut, and the numbers stay."""
    name = "n" * length
    problems = {"verdict": "warn", "problems": ["warn: docker-cdi: " + "x" * 300]}
    reported = {f"gpu.{name}": node(instance(name, model=name), doctor=problems)}
    shown = lines(reported)
    assert max(map(len, shown)) <= screen.WIDTH
    assert any("healthy" in line and "9h" in line for line in shown)


def test_no_line_is_too_wide_where_the_elastic_columns_cannot_be_cut_further() -> None:
    shown = screen.fit([screen.HEADER, ["n" * 30] * len(screen.HEADER)], screen.WIDTH)
    assert max(map(len, table.lines(shown))) == screen.WIDTH
    # A fleet with many different verdicts has a long summary.
    probes = [{"verdict": "v" * 20 + str(number), "since": None, "stale": False} for number in range(9)]
    reported = {f"gpu{number}": node(instance(probe=probe)) for number, probe in enumerate(probes)}
    assert max(map(len, lines(reported))) <= screen.WIDTH


def test_a_fleet_in_trouble_keeps_its_table() -> None:
    problems = {"verdict": "fail", "problems": [f"fail: check-{number}: bad" for number in range(200)]}
    shown = lines({"gpu1": node(instance(), doctor=problems)})
    assert len(shown) < 50 and shown[-1].startswith("and 160 more: ")


def test_unknown_facts_of_a_node_break_nothing() -> None:
    blind = node(instances=None, system=None, gpus=None, doctor=None, backup=None, updated=None, errors={"gpus": "hm"})
    shown = lines({"gpu1": blind, "gpu2": {}})
    assert "gpu1: gpus is unknown: hm" in shown
    assert "gpu2: UNREACHABLE: did not answer" in shown
    assert any(line.split() == ["gpu1", "-", "-", "-", "-", "-", "?", "?", "-", "none"] for line in shown)


def test_gpus_that_do_not_report_are_counted() -> None:
    gpus = {**node()["gpus"], "reported": 3, "hottest_c": None}
    assert any(" 3/4 " in line for line in lines({"gpu1": node(instance(), gpus=gpus)}))


def test_an_empty_fleet_has_no_instances() -> None:
    assert lines({})[0] == "0 nodes, 0 instances, 0 GPUs"
