# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of perftest in both forms, and what their numbers mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import perftest

OLD = """{
test_info: {
test: RDMA_Write_BW_Test,
Dual_port: OFF,
Device: "rocep65s0f0",
Number_of_qps: 1,
Transport_type: IB,
Connection_type: RC,
Using_SRQ: OFF,
PCIe_relax_order: ON,
ibv_wr_API: ON,
TX_depth : 128,
CQ_Moderation: 1,
Mtu: 4096,
Link_type: Ethernet,
GID_index: 3,
Max_inline_data: 0,
rdma_cm_QPs: OFF,
Data_ex_method: Ethernet,
},
results: {
MsgSize: 65536,
n_iterations: 10834,
BW_peak: 0.00,
BW_average: 97.66,
MsgRate: 0.186932,
}
}
"""
"""A file of version 6.06 (Debian 12), made from the formats in its source."""

NEW = """{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Dual_port": "OFF",
"Device": "rocep65s0f0",
"Number_of_qps": 1,
"Transport_type": "IB",
"Connection_type": "RC",
"Using_SRQ": "OFF",
"PCIe_relax_order": "ON",
"ibv_wr_API": "ON",
"TX_depth": 128,
"CQ_Moderation": 1,
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 3,
"Max_inline_data": 0,
"rdma_cm_QPs": "OFF",
"Use_ROCm_memory": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 10834,
"BW_peak": 0.00,
"BW_average": 97.66,
"MsgRate": 0.186932
}
}
"""
"""A file of version 6.24 (Debian 13)."""

LATENCY = """{
test_info: {
test: RDMA_Write_Latency_Test,
Device: "rocep65s0f0",
Mtu: 4096,
},
results: {
MsgSize: 8,
n_iterations: 1000,
t_min: 1.60,
t_max: 5.51,
t_typical: 1.71,
t_avg: 1.72,
t_stdev: 0.08,
percentile_99: 1.90,
percentile_99.9: 2.31,
}
}
"""


def test_the_files_of_both_versions_give_the_same_report() -> None:
    json.loads(NEW)
    with pytest.raises(ValueError, match="property name"):
        json.loads(OLD)
    old, new = perftest.read(OLD), perftest.read(NEW)
    assert old == new and (old.device, old.mtu, old.gpu) == ("rocep65s0f0", 4096, False)
    assert old.results == [
        {"MsgSize": 65536.0, "n_iterations": 10834.0, "BW_peak": 0.0, "BW_average": 97.66, "MsgRate": 0.186932}
    ]


def test_a_latency_has_a_verdict() -> None:
    report = perftest.read(LATENCY)
    assert report.results[0]["percentile_99.9"] == 2.31
    assert perftest.judge(report, None).good is True
    for shown, good in (("4.20", None), ("26000.00", False)):
        text = LATENCY.replace("t_typical: 1.71", f"t_typical: {shown}")
        verdict = perftest.judge(perftest.read(text), None)
        assert verdict.good is good and "microseconds" in verdict.message


def test_several_sizes_are_read_and_gpu_memory_has_a_lower_limit() -> None:
    small = OLD.replace("65536", "2").replace("97.66", "0.08")
    report = perftest.read(small + OLD.replace("Mtu: 4096", "cuda_device: 0,\nMtu: 4096").replace("97.66", "90.00"))
    assert len(report.results) == 2
    assert perftest.judge(report, 98.04).good is False
    report = perftest.read(NEW.replace('"Mtu"', '"cuda_device": 0,\n"Mtu"').replace("97.66", "90.00"))
    assert report.gpu and perftest.judge(report, 98.04).good is True


TABLE = """\
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rocep65s0f0
 Mtu             : 4096[B]
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 2          5000             0.05               0.04               2.830684
 65536      20000            98.01              97.66  \t\t   0.186932
"""

LATENCY_TABLE = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 8       1000          1.60           5.51         1.71     \t       1.72        \t0.08
"""


def test_the_table_of_the_output_has_units() -> None:
    report = perftest.read(TABLE)
    assert (report.device, report.mtu, report.gpu, report.both_ways) == ("rocep65s0f0", 4096, False, False)
    assert [one["MsgSize"] for one in report.results] == [2, 65536]
    assert perftest.judge(report, 98.04).good is True
    # Debian 13's version writes MiB.
    for unit in ("MB/sec", "MiB/sec"):
        mebibytes = TABLE.replace("Gb/sec", unit).replace("97.66", "11641.98")
        assert perftest.read(mebibytes).results[1]["BW_average"] == pytest.approx(97.66, abs=0.001)
    # The unit is known, so the message does not suggest another unit.
    verdict = perftest.judge(perftest.read(TABLE.replace("97.66", "190.00")), 98.04)
    assert verdict.good is None and "does not belong to this rail" in verdict.message
    assert perftest.read(f"allocated 8192 bytes of GPU buffer\n{TABLE}").gpu
    assert perftest.judge(perftest.read(LATENCY_TABLE), None).good is True


def test_only_the_latency_of_small_messages_is_judged() -> None:
    every = LATENCY_TABLE + LATENCY_TABLE.splitlines()[1].replace(" 8 ", " 8388608 ").replace("1.71", "182.40") + "\n"
    verdict = perftest.judge(perftest.read(every), None)
    assert verdict.good is True and "1.71 microseconds" in verdict.message
    verdict = perftest.judge(perftest.read(LATENCY_TABLE.replace(" 8 ", " 65536 ")), None)
    assert verdict.good is None and "too large; use -s 8" in verdict.message
    duration = " #bytes #iterations t_avg[usec]    tps average\n 8 1000 1.72 290697.67\n"
    assert perftest.judge(perftest.read(duration), None).good is True
    cycles = perftest.judge(perftest.read(LATENCY_TABLE.replace("usec", "cycles")), None)
    assert cycles.good is None


def test_only_the_bandwidth_of_large_messages_is_judged() -> None:
    for text in (OLD, NEW, TABLE):
        small = perftest.read(text.replace("65536", "4096").replace("97.66", "44.00"))
        for limit in (98.04, None):
            verdict = perftest.judge(small, limit)
            assert verdict.good is None and "too small; use -s 65536 or more" in verdict.message


@pytest.mark.parametrize("number", ["inf", "-nan"])
def test_a_table_with_numbers_that_are_not_finite_is_not_judged(number: str) -> None:
    verdict = perftest.judge(perftest.read(TABLE.replace("97.66", number)), 98.04)
    assert verdict.good is None and "too busy to measure its clock" in verdict.message


def test_a_test_of_both_directions_has_twice_the_limit() -> None:
    for text in (
        TABLE.replace("Write BW Test", "Write Bidirectional BW Test"),
        NEW.replace("RDMA_Write_BW_Test", "RDMA_Write_Bidirectional_BW_Test"),
        OLD.replace("RDMA_Write_BW_Test", "RDMA_Write_Bidirectional_BW_Test"),
    ):
        for rate, good in (("190.00", True), ("97.66", False), ("300.00", None)):
            verdict = perftest.judge(perftest.read(text.replace("97.66", rate)), 98.04)
            assert verdict.good is good and "196.1 Gb/s" in verdict.message


@pytest.mark.recordings("perftest")
def test_recorded_tables_are_read(recording: Any) -> None:
    report, expected = perftest.read(recording.text()), recording.expected
    assert report.device == expected["device"]
    assert report.mtu == (int(expected["mtu"]) if expected["mtu"] else None)
    unit = perftest.UNITS[expected["unit"]]
    found = [(one["MsgSize"], one["n_iterations"], one["BW_peak"], one["BW_average"]) for one in report.results]
    wanted = [(one["bytes"], one["iters"], one["peak"] * unit, one["avg"] * unit) for one in expected["data"]]
    assert found == [pytest.approx(numbers) for numbers in wanted]
    assert max(one["BW_average"] for one in report.results) == pytest.approx(expected["max_avg_gbps"], abs=0.01)


@pytest.mark.parametrize(
    ("rate", "mtu", "layer", "pcie", "limit"),
    [
        (400.0, 4096, "Ethernet", None, 392.15),
        (100.0, 1024, "Ethernet", None, 92.59),
        (400.0, 4096, "InfiniBand", None, 397.48),
        (400.0, 4096, "Ethernet", {"gen": 4, "width": 16}, 252.06),
        (400.0, 4096, "Ethernet", {"gen": 5, "width": 16}, 392.15),
        (400.0, 4096, "Ethernet", {"gen": None, "width": 16}, 392.15),
    ],
)
def test_the_possible_bandwidth_depends_on_rate_mtu_layer_and_pcie(
    rate: float, mtu: int, layer: str, pcie: Any, limit: float
) -> None:
    assert perftest.possible(rate, mtu, layer, pcie) == pytest.approx(limit, abs=0.01)


@pytest.mark.parametrize(
    ("rate", "good", "words"),
    [
        ("97.66", True, "97.66 Gb/s, 100% of the 98.0 Gb/s that the rail can carry"),
        ("92.20", True, "94%"),
        ("92.10", False, "94%"),
        ("49.00", False, "about half, as with ACS"),
        ("0.40", False, "packets are lost"),
        ("11444.00", None, "use --report_gbits"),
        ("0.00", None, "neither bandwidth nor latency"),
    ],
)
def test_a_bandwidth_has_a_verdict(rate: str, good: bool | None, words: str) -> None:
    verdict = perftest.judge(perftest.read(OLD.replace("97.66", rate)), perftest.possible(100.0, 4096, "Ethernet"))
    assert verdict.good is good and words in verdict.message
    assert perftest.judge(perftest.read(OLD.replace("97.66", rate)), None).good is None


def test_a_latency_that_is_infinite_or_0_is_not_judged() -> None:
    """Seen on an emulated machine under load."""
    for number in ("inf", "0.00"):
        verdict = perftest.judge(perftest.read(LATENCY.replace("1.71", number)), None)
        assert verdict.good is None and "neither bandwidth nor latency" in verdict.message


@pytest.mark.parametrize("text", ["", "{}", "couldn't connect to 192.0.2.1:18515", "results: {\n}", "[1, 2]"])
def test_a_text_without_a_result_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="--out_json_file"):
        perftest.read(text)


@given(st.text(), st.integers(0, len(OLD)))
def test_any_text_is_read_or_an_error_that_names_the_option_for_the_file(noise: str, cut: int) -> None:
    for text in (noise, OLD[:cut] + noise + OLD[cut:], NEW[:cut], TABLE[:cut] + noise + TABLE[cut:]):
        try:
            perftest.judge(perftest.read(text), 98.0)
        except ValueError as error:
            assert "--out_json" in str(error)
