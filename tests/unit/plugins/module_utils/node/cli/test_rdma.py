# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""inferctl rdma: what a boot applies, what differs, which ports are rails, and how results of tests are judged."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import boot, machine, written
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import plan
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl, rdma
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import Host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A node with recorded settings, just booted."""
    host = Host(tmp_path)
    monkeypatch.setattr(rdma, "run", host.run)
    facts = boot.gather(host.root, host.run)
    planned, findings = plan({}, machine.read(host.root, facts, "192.0.2.7", {}, (), host.run))
    assert not findings.problems
    written.write(host.root, written.differing(host.root, planned.texts, None), host.run)
    files.write(Paths(host.root).rdma_settings, files.to_json(planned.desired.as_dict()))
    return host


def call(host: Host, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = inferctl.main(["rdma", *words], Paths(host.root))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_apply_makes_the_settings_that_the_command_check_has_shown(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _err = call(host, capsys, "check")
    assert code == 1 and "rail 0 (rocep0s0/1): mtu: 1500 -> 9000" in out and host.mtu("ens0") == 1500
    code, out, err = call(host, capsys, "apply")
    assert (code, err) == (0, "") and "rail 1 (rocep1s0/1): pfc: none -> 3" in out and host.mtu("ens0") == 9000
    code, out, _err = call(host, capsys, "check")
    assert (code, out.splitlines()[-1]) == (0, "rails with all recorded settings: 2")


def test_the_json_of_check_has_changes_and_the_json_of_apply_has_failures(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    document: dict[str, Any] = json.loads(call(host, capsys, "check", "--json")[1])
    assert document["schema"] == 1 and document["changes"][0]["text"].startswith("rail 0")
    assert json.loads(call(host, capsys, "apply", "--json")[1])["failures"] == []
    assert json.loads(call(host, capsys, "check", "--json")[1])["changes"] == []


def test_the_command_apply_changes_rails_while_engines_run_only_with_force(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.engines = ["main"]
    code, out, _err = call(host, capsys, "apply")
    assert code == 0 and "waits until main is drained: rail 0 (rocep0s0/1): mtu" in out and host.mtu("ens0") == 1500
    assert inferctl.main(["status"], Paths(host.root)) == 0
    line = "rail 0 (rocep0s0/1): mtu: 1500 -> 9000: waits until this node is drained: baremetal.inference.maintenance"
    assert line in capsys.readouterr().out.splitlines()
    code, out, _err = call(host, capsys, "apply", "--force")
    assert code == 0 and host.mtu("ens0") == 9000
    inferctl.main(["status", "--json"], Paths(host.root))
    assert json.loads(capsys.readouterr().out)["rails_waiting"] == []


def test_a_missing_rail_is_an_error_and_the_others_are_set(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "sys/class/infiniband/rocep1s0").unlink()
    code, out, _err = call(host, capsys, "apply", "--wait", "0")
    line = "rail 1 (0000:21:00.0/1): this node has no such RDMA device; see lspci and dmesg"
    assert code == 1 and line in out.splitlines() and host.mtu("ens0") == 9000


def test_a_setting_that_cannot_be_set_has_its_own_exit_code_and_a_failure_comes_first(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    del host.dcb["ens1"]
    line = "cannot be set: rail 1 (rocep1s0/1): pfc: the driver of the network device has no DCB"
    code, out, err = call(host, capsys, "apply")
    assert (code, err) == (4, "") and line in out.splitlines() and host.mtu("ens0") == 9000
    assert call(host, capsys, "apply", "--json")[0] == 4
    (host.root / "sys/class/infiniband/rocep0s0").unlink()
    code, out, _err = call(host, capsys, "apply")
    assert code == 1 and line in out.splitlines()


def test_one_process_at_a_time_makes_settings(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """After a boot, each RDMA device starts a process that makes settings."""
    finished = threading.Event()

    def apply() -> None:
        inferctl.main(["rdma", "apply"], Paths(host.root))
        finished.set()

    thread = threading.Thread(target=apply)
    with boot.alone(Paths(host.root)):
        thread.start()
        assert not finished.wait(0.3) and host.mtu("ens0") == 1500
        # `check` changes nothing, and does not wait.
        assert call(host, capsys, "check")[0] == 1
    thread.join(20)
    assert finished.is_set() and host.mtu("ens0") == 9000


def test_a_setting_that_does_not_stay_is_an_error(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.stuck = {"mtu"}
    code, _out, err = call(host, capsys, "apply")
    assert code == 1 and "inferctl: rail 0 (rocep0s0/1): mtu: 1500 -> 9000: the value did not stay" in err


def test_the_command_show_prints_each_port_with_its_rail(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    mapped = "0000:0000:0000:0000:0000:ffff:0a01:0007"
    host.machine.gid("sys/class/infiniband/rocep0s0/ports/1", 3, mapped, "RoCE v2", "ens0")
    code, out, _err = call(host, capsys, "show")
    first, second = out.splitlines()
    assert ", GID index 3; nearest" in first and "GID" not in second
    assert code == 0 and first.startswith("rocep0s0/1: rail 0; ethernet, ACTIVE, 400 Gb/sec (4X NDR); ens0, MTU 1500")
    document = json.loads(call(host, capsys, "show", "--json")[1])
    assert [port["rail"] for port in document["ports"]] == [0, 1] and len(document["recorded"]) == 2


def test_a_node_without_recorded_rails_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host(tmp_path, rails=0)
    monkeypatch.setattr(rdma, "run", host.run)
    for word in ("apply", "check"):
        code, _out, err = call(host, capsys, word)
        assert code == 2 and "no rails are recorded on this node" in err
    assert call(host, capsys, "show")[1] == "no RDMA device on this node\n"
    files.write(Paths(tmp_path).rdma_settings, "{}")
    for word in ("apply", "check", "show"):
        code, _out, err = call(host, capsys, word)
        assert code == 2 and "does not have schema 1" in err


@pytest.mark.parametrize(
    ("device", "rate", "code", "words"),
    [
        ("rocep0s0", "391.00", 0, "rocep0s0: good: 391 Gb/s, 100% of the 392.1 Gb/s that the rail can carry"),
        ("rocep0s0", "196.00", 1, "rocep0s0: bad: 196 Gb/s, 50% of the 392.1"),
        ("rocep0s0", "46600.00", 4, "use --report_gbits"),
        ("rocep9s0", "391.00", 4, "what the rail can carry is unknown"),
    ],
)
def test_a_result_is_judged_by_what_the_rail_can_carry(
    host: Host, capsys: pytest.CaptureFixture[str], tmp_path: Path, device: str, rate: str, code: int, words: str
) -> None:
    result = f'test_info: {{\nDevice: "{device}",\nMtu: 4096,\n}},\nresults: {{\nBW_average: {rate},\n}}\n'
    (tmp_path / "result").write_text(result)
    found, out, _err = call(host, capsys, "judge", str(tmp_path / "result"))
    assert found == code and words in out


def test_a_result_of_nccl_tests_is_judged_by_the_sum_of_all_rails(
    host: Host, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two rails of 400 Gb/s, with packets of 4096 bytes."""
    call(host, capsys, "apply")
    ranks = "".join(f"#  Rank  {n} Group  0 Pid 1 on node{n} device  0 [0000:0f:00] NVIDIA H100\n" for n in (0, 1))
    row = "8589934592 2147483648 float sum -1 45110 50.0 {0} 0 45132 50.0 {0} 0\n# Out of bounds values : 0 OK\n"
    for rate, code, words in (("93.10", 0, "good: 93.1 GB/s"), ("40.00", 1, "41% of the 98.0 GB/s"), ("99", 0, "good")):
        (tmp_path / "result").write_text(ranks + row.format(rate))
        found, out, _err = call(host, capsys, "judge", str(tmp_path / "result"))
        assert found == code and out.startswith("nccl-tests: ") and words in out


def test_a_result_of_a_part_of_the_gpus_is_not_judged(
    host: Host, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two GPUs and two rails: a test with one GPU of each node uses one rail."""
    for slot in (2, 3):
        host.machine.pci(f"0000:11:0{slot}.0", "pci0000:11", vendor="0x10de", **{"class": "0x030200"})
    call(host, capsys, "apply")
    ranks = "".join(f"#  Rank  {n} Group  0 Pid 1 on node{n} device  0 [0000:11:02] NVIDIA H100\n" for n in (0, 1))
    row = "8589934592 2147483648 float sum -1 45110 49.0 49.0 0 45132 49.0 49.0 0\n"
    (tmp_path / "result").write_text(ranks + row)
    code, out, _err = call(host, capsys, "judge", str(tmp_path / "result"))
    assert code == 4 and "use 2" in out


def test_the_command_judge_refuses_a_file_without_a_result(
    host: Host, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in (tmp_path / "missing", tmp_path):
        code, _out, err = call(host, capsys, "judge", str(path))
        assert code == 2 and str(path) in err
    _code, _out, err = call(host, capsys, "judge", str(tmp_path / "missing"))
    assert "No such file or directory" in err
