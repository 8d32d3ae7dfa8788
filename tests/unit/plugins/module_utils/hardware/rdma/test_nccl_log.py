# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's log, in the forms of its versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import nccl_log
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.nccl_log import Log, read, verdict

NEW = """\
(EngineCore pid=7) INFO 01-02 03:04:05 some line of an engine
n1:10:20 [0] NCCL INFO Bootstrap: Using eno1:192.0.2.7<0>
n1:10:20 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
n1:10:20 [0] NCCL INFO NET/IB : Using [0]rocep16s0:1/RoCE [1]rocep17s0:1/RoCE [RO]; OOB eno1:192.0.2.7<0>
n1:10:20 [0] NCCL INFO Using network IB
n1:10:20 [0] NCCL INFO Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/0/GDRDMA
n1:10:20 [0] NCCL INFO Channel 01/0 : 0[0] -> 3[3] [send] via NET/IB/1(1)/GDRDMA/Shared
n1:10:20 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
n1:10:20 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
"""

OLD = """\
n1:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:192.0.2.7<0>
n1:10:20 [0] NCCL INFO Using network IB
NCCL version 2.8.3+cuda11.0
n1:10:20 [0] NCCL INFO Ring 00 : 15[41000] -> 0[1b000] [receive] via NET/IB/0
n1:10:20 [0] NCCL INFO Channel 00 : 0[1b000] -> 1[c1000] [send] via NET/IB/0/GDRDMA
"""

TCP = """\
n1:10:20 [0] NCCL INFO NET/IB : No device found.
n1:10:20 [0] NCCL INFO Using network Socket
n1:10:20 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
"""


def of(text: str) -> Log:
    return read(text.splitlines())


def test_a_log_of_nccl_2_27_is_read() -> None:
    found = of(NEW)
    assert (found.lines, found.version, found.network) == (8, "2.27.3", "IB")
    assert (found.devices, found.layers) == (["rocep16s0:1", "rocep17s0:1"], ["RoCE"])
    assert (found.relaxed_ordering, found.channels, found.gpudirect) == (True, {"IB": 2}, 2)
    assert found.gpudirect_summary is True and found.faults == {}


def test_a_log_of_nccl_2_8_is_read() -> None:
    found = of(OLD)
    assert (found.version, found.devices, found.layers) == ("2.8.3", ["mlx5_0:1"], ["IB"])
    assert (found.relaxed_ordering, found.channels, found.gpudirect) == (False, {"IB": 2}, 1)


MERGED = """\
n1:10:20 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [1]={[2] mlx5_0:1/RoCE} [RO]; OOB b0
n1:10:20 [0] NCCL INFO Using network IBext_v8
"""
"""NCCL 2.21 to 2.23 print the ports of one card as one device; from issue 373 of NVIDIA/nccl-tests."""


def test_ports_that_nccl_merges_into_one_device_are_all_found() -> None:
    found = of(MERGED)
    assert (found.devices, found.layers) == (["mlx5_2:1", "mlx5_3:1", "mlx5_0:1"], ["RoCE"])
    assert verdict(found, ["mlx5_0:1", "mlx5_2:1", "mlx5_3:1"]).status == "ok"


@pytest.mark.parametrize(
    ("via", "network", "gpudirect"),
    [
        ("NET/IB/3/GDRDMA", "IB", 1),
        ("NET/IB/3/GDRDMA(PCI)", "IB", 1),
        ("NET/IB/3/GDRDMA(PCI)/Shared", "IB", 1),
        ("NET/IB/3(5)/GDRDMA", "IB", 1),
        ("NET/IB/3(5)", "IB", 0),
        ("NET/IB/0/Shared", "IB", 0),
        ("NET/Socket/1(0)/Shared", "Socket", 0),
        ("NET/NCCL RDMA Plugin v10/0", "NCCL RDMA Plugin v10", 0),
    ],
)
def test_a_channel_has_a_network_and_may_use_gpudirect(via: str, network: str, gpudirect: int) -> None:
    for ends in ("00/0 : 8[0] -> 0[0] [receive]", "01/1 : 0[1b000] -> 8[1b000] [send]", "00 : 1 -> 0 [receive]"):
        found = of(f"n NCCL INFO Channel {ends} via {via}\n")
        assert (found.channels, found.gpudirect) == ({network: 1}, gpudirect)


def test_other_lines_are_no_channels_over_the_network() -> None:
    found = of(
        "n NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
        "n NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n"
        "n NCCL INFO CollNet 00/0 : 8 [receive] via COLLNET/SHARP/0/GDRDMA\n"
        "n NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)\n"
        "n NCCL INFO Channel 00/08 :    0   7   6   5   4   3   2   1   8\n"
        "n NCCL INFO Connected NVLS tree\n"
    )
    assert found.lines == 6 and found.channels == {} and found.gpudirect_summary is None
    assert verdict(found).status == "unknown"


def test_one_communicator_without_gpudirect_is_a_warning() -> None:
    lines = "n NCCL INFO Using network IB\n" + "".join(
        f"n NCCL INFO Connected all rings, use ring PXN 0 GDR {number}\n" for number in (1, 0, 1)
    )
    found = verdict(of(lines))
    assert found.status == "warn" and found.message == "NCCL uses IB without GPUDirect"


def test_a_device_that_does_not_reach_gpu_memory_is_a_warning() -> None:
    """NCCL without a summary prints these lines. A line with a distance is about only one pair of GPU and device."""
    lines = (
        "n NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)\n"
        "n NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 1 'mlx5_1'\n"
        "n NCCL INFO GPU Direct RDMA Disabled for GPU 1 / HCA 1 (distance 8 > 5)\n"
        "n NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eno1'\n"
        "n NCCL INFO Using network IB\n"
    )
    found = of(lines)
    assert found.staged == ["mlx5_0"]
    assert verdict(found).status == "warn" and verdict(found).message == "NCCL uses IB without GPUDirect on mlx5_0"
    assert verdict(found, near=False).status == "ok"
    # A group within a node, which needs no network, has GDR 1.
    found = of(f"{lines}n NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n")
    assert verdict(found).status == "warn" and verdict(found).message == "NCCL uses IB without GPUDirect on mlx5_0"


def test_some_channels_over_tcp_are_a_failure() -> None:
    lines = OLD + 3 * f"{TCP.splitlines()[2]}\n"
    found = verdict(of(lines), ["mlx5_0:1"])
    assert found.status == "fail" and found.message == "NCCL uses TCP on 3 of 5 channels; expected were mlx5_0:1"
    assert verdict(of(lines.replace(TCP.splitlines()[2], "", 2)), ["mlx5_0:1"]).status == "fail"


def test_a_verdict_has_the_cause_of_tcp() -> None:
    lines = "n NCCL INFO Failed to open libibverbs.so[.1]\nn NCCL INFO Assigned NET plugin Socket to comm\n"
    found = verdict(of(lines), ["x:1"])
    assert found.status == "fail" and "expected were x:1: the engine's image has no libibverbs" in found.message
    assert "libibverbs1" in found.action
    assert verdict(of(lines)).status == "ok"


@pytest.mark.parametrize(
    "form",
    [
        "mlx5_3:1 Got non-fatal async event: port {}(9)",
        "mlx5_3:1 Got async error event: port {}",
        "Got async event : port {}",
    ],
)
def test_a_port_that_went_down_is_a_warning(form: str) -> None:
    """A port that came back is no fault: newer versions of NCCL continue."""
    error, active = (
        f"[2026-02-02 12:15:56] n:1:2 [0] transport/net_ib.cc:253 NCCL WARN NET/IB : {form.format(what)}\n"
        for what in ("error", "active")
    )
    name = "mlx5_3:1" if "mlx5" in form else "a port"
    assert of(error).down == of(error + active + error).down == [name] and of(error + active).down == []
    assert verdict(of(error)).status == "warn" and verdict(of(NEW + error + active)).status == "ok"
    found = verdict(of(NEW + error))
    assert found.status == "warn" and found.action
    assert found.message == f"{name} went down under the running engine, and did not come back (network IB)"
    # A fault that stops the traffic counts more.
    error += "n NCCL WARN NET/IB : Got completion from peer 192.0.2.8<5> with error 12, opcode 0, len 0\n"
    assert verdict(of(NEW + error)).status == "fail"


def test_channels_over_a_network_plugin_are_counted() -> None:
    found = of("x NCCL INFO Channel 06/0 : 36[4] -> 20[4] [send] via NET/IBext_v8/3\n")
    assert found.channels == {"IB": 1}
    found = of("x NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/AWS Libfabric/0/GDRDMA\n")
    assert (found.channels, found.gpudirect) == ({"AWS Libfabric": 1}, 1)


@pytest.mark.parametrize(
    ("text", "expected", "near", "status", "words"),
    [
        (NEW, ["rocep16s0:1", "rocep17s0:1"], True, "ok", "with GPUDirect on all 2 channels"),
        (NEW, ["rocep16s0:1", "rocep18s0:1"], True, "warn", "does not use rocep18s0:1"),
        (OLD, [], True, "warn", "with GPUDirect on 1 of 2 channels"),
        (OLD, [], False, "ok", "no common switch"),
        (TCP, ["rocep16s0:1"], True, "fail", "uses TCP; expected were rocep16s0:1: NCCL found no RDMA device"),
        (TCP, [], True, "ok", "uses TCP"),
        ("", ["x:1"], True, "unknown", "printed nothing"),
        ("n NCCL INFO cudaDriverVersion 12080\n", [], True, "unknown", "did not name its network"),
        ("n NCCL INFO Using network IB\n", [], True, "ok", "its log does not show whether it uses GPUDirect"),
        (
            f"{OLD.splitlines()[1]}\nn NCCL INFO Connected all rings, use ring PXN 0 GDR 0\n",
            [],
            True,
            "warn",
            "without",
        ),
        (
            f"{OLD.splitlines()[1]}\nn NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n",
            [],
            True,
            "ok",
            "all channels",
        ),
    ],
)
def test_a_log_has_a_verdict(text: str, expected: list[str], near: bool, status: str, words: str) -> None:
    found = verdict(of(text), expected, near)
    assert (found.status, words in found.message) == (status, True), found
    assert bool(found.action) == (status != "ok" or "does not show" in words)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NET/IB : Got completion from peer 192.0.2.8<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0", "path_dead"),
        ("NET/IB : Got completion from peer 192.0.2.8<5> with error 12, opcode 0, len 0", "path_dead"),
        ("NET/IB : Got completion from peer 192.0.2.8<5> with status=12 opcode=1 len=0 vendor err 129", "path_dead"),
        ("NET/IB : Got completion from peer 192.0.2.8<5> with error 13, opcode 0", "peer_slow"),
        ("NET/IB : Got completion with error 10, opcode 129", "access"),
        ("Call to ibv_create_qp failed", "memlock"),
        ("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "memlock"),
        ("NET/IB : Attempted to connect incompatible devices", "mixed"),
        ("NET/IB : mlx5_0:1 GID table changed", "gid_changed"),
        ("NET/IB : mlx5_3:1 Got async event : GID table change", "gid_changed"),
        ("NET/IB : mlx5_3:1 async fatal event on QP (0x7f): local access violation work queue error", "device_failed"),
        ("NET/IB : Got async event : local catastrophic error", "device_failed"),
        ("NET/IB : mismatched physical devices between local and remote", "rails_differ"),
        ("Bootstrap : no socket interface found", "no_interface"),
        ("Failed to initialize any NET plugin", "required"),
    ],
)
def test_a_fault_in_a_line_of_nccl_is_a_failure(line: str, kind: str) -> None:
    found = of(f"{NEW}n1:10:20 [0] transport/net_ib.cc:818 NCCL WARN {line}\n")
    assert found.faults == {kind: 1}
    answer = verdict(found)
    assert answer.status == "fail" and answer.action


def test_faults_in_lines_of_other_programs_do_not_count() -> None:
    assert of("torch: Cannot allocate memory, error 12\n") == Log()


@pytest.mark.recordings("nccl_tests")
def test_recorded_logs_have_no_faults(recording: Any) -> None:
    found = of(recording.text())
    assert found.faults == {}
    if "NCCL_INFO" in recording.name:
        assert found.gpudirect_summary is True and found.lines > 5


@given(st.lists(st.sampled_from([*NEW.splitlines(), *OLD.splitlines(), *TCP.splitlines()]) | st.text(max_size=30)))
def test_any_mixture_of_lines_has_a_verdict(lines: list[str]) -> None:
    found = read(lines)
    assert found.gpudirect <= sum(found.channels.values())
    assert verdict(found).status in (nccl_log.OK, nccl_log.WARN, nccl_log.UNKNOWN, nccl_log.FAIL)
