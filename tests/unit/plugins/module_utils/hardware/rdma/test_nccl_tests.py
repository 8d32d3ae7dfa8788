# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outputs of nccl-tests, and what their numbers mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import nccl_tests

OUTPUT = """\
# Collective test starting: all_reduce_perf
# Using devices
#  Rank  0 Group  0 Pid   2574 on node1 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   2087 on node2 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
NCCL version 2.27.3+cuda12.9
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    21.57    0.00    0.00       0    21.24    0.00    0.00       0
  8589934592    2147483648     float     sum      -1    45110  190.42  357.04       0    45132  190.33  356.87       0
n1:60:109 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 178.2
"""

LIMIT = 392.15


def judge(text: str, limit: float | None = LIMIT) -> nccl_tests.Verdict:
    return nccl_tests.judge(nccl_tests.read(text), limit)


def as_json(**more: Any) -> str:
    """What the option -J writes for OUTPUT."""
    ways = {"out_of_place": {"time": 1.0, "alg_bw": 190.42, "bus_bw": 357.04, "nwrong": 0.0}}
    ways["in_place"] = {**ways["out_of_place"], "bus_bw": 356.87}
    return json.dumps(
        {
            "version": 2,
            "args": ["/opt/nccl-tests/all_reduce_perf", "-b", "8G"],
            "env": ["SECRET=hidden"],
            "config": {"devices": [{"rank": rank, "hostname": f"node{rank + 1}"} for rank in range(2)]},
            "results": [{"size": 8589934592, "type": "float", "redop": "sum", "root": "-1", **ways}],
            "out_of_bounds": {"count": 0, "okay": "true"},
            "average_bus_bandwidth": {"bandwidth": 178.2, "okay": "unchecked"},
            **more,
        }
    )


def test_the_table_and_the_json_give_the_same_report() -> None:
    table, document = nccl_tests.read(OUTPUT), nccl_tests.read(as_json())
    assert table.hosts == document.hosts == ["node1", "node2"] and table.ranks == document.ranks == 2
    assert table.results[-1] == document.results[-1] == nccl_tests.Result(8 << 30, 357.04, 356.87, 0.0)
    assert table.test == document.test == "all_reduce_perf" and table.operation == document.operation == "sum"
    assert (table.out_of_bounds, table.average) == (document.out_of_bounds, document.average) == (0, 178.2)
    assert table.devices == ["NVIDIA H100 80GB HBM3"]
    assert "hidden" not in repr(document)


@pytest.mark.parametrize("change", [{"out_of_place": None}, {"out_of_place": {"bus_bw": "nan", "nwrong": None}}])
def test_a_test_without_results_out_of_place_has_the_bandwidth_in_place(change: dict[str, Any]) -> None:
    """In JSON, the text nan replaces an unknown number."""
    data = json.loads(as_json())
    data["results"][0].update(change)
    (result,) = nccl_tests.read(json.dumps(data)).results
    assert (result.out_of_place, result.busbw) == (None, 356.87)
    (result,) = nccl_tests.read("1024 256 float sum -1 N/A N/A N/A N/A 21.2 0.05 0.09 0").results
    assert (result.out_of_place, result.busbw) == (None, 0.09)


@pytest.mark.parametrize(
    ("before", "after", "good", "words"),
    [
        ("", "", True, "357.04 GB/s with messages of 8 GiB, 91% of the 392.1 GB/s"),
        ("357.04", "352.00", True, "91%"),
        ("35", "20", False, "207.04 GB/s"),
        ("35", "19", False, "about half"),
        ("35", "47", None, "NCCL_ALGO=RING"),
        (" 357.04 ", " 5.04 ", True, "91%"),
        ("8589934592", "536870912", None, "use -b 8G"),
        ("on node2", "on node1", None, "only a test over several nodes"),
        ("all_reduce_perf", "alltoall_perf", None, "only tests such as all_reduce_perf"),
        ("values : 0 OK", "values : 336 FAILED", False, "results with wrong elements: 336"),
    ],
)
def test_a_bandwidth_has_a_verdict(before: str, after: str, good: bool | None, words: str) -> None:
    verdict = judge(OUTPUT.replace(before, after) if before else OUTPUT)
    assert (verdict.good, words in verdict.message) == (good, True), verdict
    assert judge(OUTPUT, None).good is None


def test_groups_that_use_one_rail_each_are_not_judged() -> None:
    """NCCL_TESTS_SPLIT='MOD 8' gives each group one GPU of each node, which has the bandwidth of its own rail."""
    table = "".join(
        f"#  Rank  {rank} Group  {rank % 2} Pid 1 on node{rank // 2} device  {rank % 2} [0000:0f:00] NVIDIA H100\n"
        for rank in range(4)
    )
    row = "8589934592 2147483648 float sum -1 45110 49.0 {0} 0 45132 49.0 {0} 0\n"
    devices = [{"rank": rank, "group": rank % 2, "hostname": f"node{rank // 2}"} for rank in range(4)]
    for text in (table + row.format("49.00"), as_json(config={"devices": devices})):
        report = nccl_tests.read(text)
        verdict = nccl_tests.judge(report, LIMIT, 2)
        assert verdict.good is None and "it does not use all rails; use 2" in verdict.message
        assert nccl_tests.judge(report, LIMIT, 1).good is not None
    whole = nccl_tests.read(table.replace("Group  1", "Group  0") + row.format("360.00"))
    assert nccl_tests.judge(whole, LIMIT, 2).good is True


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "Mon Feb  2 12:15:56 2026[1,0]<stdout>:", " 0: "])
def test_prefixes_of_launchers_are_left_out(prefix: str) -> None:
    assert nccl_tests.read("".join(prefix + line for line in OUTPUT.splitlines(True))) == nccl_tests.read(OUTPUT)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + "0" * 400, "1e400"])
def test_numbers_that_are_not_finite_are_unknown(number: str) -> None:
    text = as_json().replace("8589934592", number)
    with pytest.raises(ValueError, match="no output of nccl-tests"):
        nccl_tests.read(text)
    report = nccl_tests.read(as_json().replace("357.04", number))
    assert (report.results[0].out_of_place, report.results[0].in_place) == (None, 356.87)


def test_an_average_that_is_not_a_number_is_unknown() -> None:
    assert nccl_tests.read(OUTPUT.replace("178.2", ".")).average is None


def test_the_operation_of_a_report_is_read() -> None:
    for text in (OUTPUT.replace("sum", "max"), as_json().replace('"sum"', '"max"')):
        assert nccl_tests.read(text).operation == "max"
    assert nccl_tests.read(as_json().replace('"sum"', '["sum"]')).operation is None


@pytest.mark.parametrize(
    ("number", "words"), [("0.50", "packets are lost"), ("5.10", "like TCP"), ("99.00", "the result on one node")]
)
def test_a_low_bandwidth_has_a_likely_cause(number: str, words: str) -> None:
    verdict = judge(OUTPUT.replace("357.04", number).replace("356.87", number))
    assert verdict.good is False and words in verdict.message


def test_wrong_elements_count_without_a_summary() -> None:
    row = "8589934592 2147483648 float sum -1 45110 190.42 357.04 {} 45132 190.33 356.87 0"
    head = "# size count type redop root time algbw busbw {0} time algbw busbw {0}\n"
    cases = (("#wrong", "2.14748e+09", 2.14748e9), ("error", "5e-07", 0.0), ("#wrong", "N/A", 0.0))
    for column, number, wrong in cases:
        report = nccl_tests.read(head.format(column) + row.format(number))
        assert report.results[0].wrong == wrong
        assert (nccl_tests.judge(report, LIMIT).good is False) == bool(wrong)


@pytest.mark.parametrize(
    ("more", "after", "cells"),
    [
        ("", " timestamp", "45110 190.4 357.04 0 45132 190.3 356.87 0 2026-02-02 12:15:56"),
        (" i_min i_max i_p99 i_cv%", "", "45110 190.4 357.04 0 1 2 3 4 45132 190.3 356.87 0 5 6 7 8"),
    ],
)
def test_further_columns_of_the_table_are_left_out(more: str, after: str, cells: str) -> None:
    way = f" time algbw busbw #wrong{more}"
    text = f"# size count type redop root{way}{way}{after}\n8589934592 2147483648 float sum -1 {cells}\n"
    assert nccl_tests.read(text).results == [nccl_tests.Result(8 << 30, 357.04, 356.87, 0.0)]


@pytest.mark.recordings("nccl_tests")
def test_recorded_outputs_are_read_and_judged(recording: Any) -> None:
    report, expected = nccl_tests.read(recording.text()), recording.expected
    largest = max(report.results, key=lambda one: one.size)
    assert (len(report.results), largest.size) == (expected["rows"], expected["max_size"])
    assert largest.out_of_place == expected["busbw_at_max_size_oop"]
    assert largest.in_place == expected["busbw_at_max_size_ip"]
    assert (report.average, report.out_of_bounds) == (expected["avg_bus_bw"], expected["out_of_bounds"])
    assert (report.ranks, report.devices) == (expected["ranks"], expected["devices"])
    verdict = nccl_tests.judge(report, None)
    assert verdict.good is (False if expected["status"] == "FAILED" else None)


@pytest.mark.parametrize("text", ["", "{}", '{"results": [null, 7, {"size": 1}]}', "[1, 2]", "# size count", "{"])
def test_a_text_without_results_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"nccl-tests|JSON"):
        nccl_tests.read(text)


@given(st.text(), st.integers(0, len(OUTPUT)))
def test_any_text_is_read_or_an_error_that_names_the_expected_form(noise: str, cut: int) -> None:
    for text in (noise, OUTPUT[:cut] + noise + OUTPUT[cut:], as_json()[:cut] + noise):
        try:
            judge(text)
        except ValueError as error:
            assert "nccl-tests" in str(error) or "JSON" in str(error)
