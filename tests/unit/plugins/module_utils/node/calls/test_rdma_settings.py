# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of rdma_settings on a machine of files, with programs that answer as the real ones do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import rdma_settings as module
from ansible_collections.baremetal.inference.plugins.modules import rdma_settings
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import Host

RunModule = Callable[..., dict[str, Any]]

WANTED: dict[str, Any] = {"addresses": ["10.1.0.7/16", "10.2.0.7/16"]}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.commands, "run", lambda command, timeout: host.run(command))
    return host


@pytest.fixture
def run(host: Host, run_module: RunModule) -> RunModule:
    return partial(run_module, module, address="192.0.2.7")


def test_check_mode_predicts_the_changes_and_a_second_run_changes_nothing(run: RunModule, host: Host) -> None:
    foreseen = run(check=True, settings=WANTED)
    assert not Paths(host.root).rdma_settings.exists() and host.mtu("ens0") == 1500
    done = run(settings=WANTED)
    assert done["changed"] is foreseen["changed"] is done["due"] is True
    for key in ("changes", "files", "diff", "rails", "pending", "gpudirect"):
        assert done[key] == foreseen[key], key
    assert done["rails"] == ["rocep0s0/1", "rocep1s0/1"]
    assert "/etc/systemd/network/60-inference-rdma-ens0.link" in done["files"]
    assert "/etc/systemd/system/inference-rdma.service" in done["files"]
    assert "systemctl daemon-reload" in host.commands
    assert host.mtu("ens0") == 9000 and host.addresses["ens1"] == ["10.2.0.7/16"]
    for again in (run(settings=WANTED), run(check=True, settings=WANTED)):
        assert again["changed"] is again["due"] is False and not again["changes"] and not again["files"]


def test_files_of_a_former_rail_are_removed(run: RunModule, host: Host) -> None:
    run(settings=WANTED)
    done = run(settings={"rails": [{"netdev": "ens0"}]})
    assert sorted(Path(path).name for path in done["files"]) == [
        "60-inference-rdma-ens0.network",
        "60-inference-rdma-ens1.link",
        "60-inference-rdma-ens1.network",
        "rdma.json",
    ]
    stored = json.loads(Paths(host.root).rdma_settings.read_text())
    assert [rail["key"] for rail in stored["rails"]] == ["0000:20:00.0/1"]


def test_all_mistakes_are_in_one_message_and_nothing_changes(run: RunModule, host: Host) -> None:
    for check in (True, False):
        result = run(check, settings={"mtu": 20000, "dscp": 106, "addresses": ["10.1.0.7/16"]})
        assert result["failed"] and result["msg"].startswith("rdma_settings: nothing was changed.\n- ")
        for words in ("the DSCP is 26", "takes at most 9978", "1 entries for 2 rails"):
            assert words in result["msg"]
    assert not (host.root / "etc").exists() and host.mtu("ens0") == 1500


def test_changes_of_rails_wait_while_engines_run(run: RunModule, host: Host) -> None:
    host.engines = ["main"]
    result = run(settings=WANTED)
    assert result["change_pending"] and result["serving"] == ["main"] and len(result["pending"]) == 4
    assert host.mtu("ens0") == 1500
    result = run(settings=WANTED)
    # Waiting changes alone do not make the role due. Otherwise, each run would enter all later roles.
    assert result["change_pending"] and not result["due"] and not result["changed"]
    host.engines = []
    assert not run(settings=WANTED)["change_pending"] and host.mtu("ens0") == 9000


def test_an_engine_whose_drain_has_expired_uses_the_rails(run: RunModule, host: Host) -> None:
    host.engines, paths, now = ["main"], Paths(host.root), datetime.now(UTC)
    for hours, waits in ((-1, True), (1, False)):
        until = drains.format_time(now + timedelta(hours=hours))
        drains.drain(paths, ["main"], drains.Drain("op", "x", drains.format_time(now), until))
        assert run(settings=WANTED)["change_pending"] is waits
    assert host.mtu("ens0") == 9000


def test_the_recorded_settings_are_made_without_the_inventory(
    run: RunModule, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(recorded=True)["changes"] == []
    host.engines = ["main"]
    planned = run(settings=WANTED)["desired"]
    assert planned["rails"][0]["mtu"] == 9000 and Paths(host.root).rdma_waiting.exists()
    refused = run(recorded=True)
    assert refused["failed"] and "mtu: 1500 -> 9000: waits for main; drain the node" in refused["msg"]
    assert run(check=True, recorded=True)["change_pending"] and host.mtu("ens0") == 1500
    # A follower has no drain of its own.
    assert not run(check=True, recorded=True, drained=["main"])["change_pending"]
    host.engines = []
    assert run(check=True, recorded=True)["changed"] and host.mtu("ens0") == 1500
    done = run(recorded=True)
    assert done["changed"] and host.mtu("ens0") == 9000 and not Paths(host.root).rdma_waiting.exists()
    assert not run(recorded=True)["changed"]
    monkeypatch.setattr(module, "DEVICE_SECONDS", 0)
    (host.root / "sys/class/infiniband/rocep1s0").unlink()
    missing = run(recorded=True)
    assert missing["failed"] and "rail 1 (0000:21:00.0/1): this node has no such RDMA device" in missing["msg"]
    Paths(host.root).rdma_settings.write_text("{}")
    assert "run baremetal.inference.site, which repairs it" in run(recorded=True)["msg"]


def test_a_setting_that_does_not_stay_is_an_error(run: RunModule, host: Host) -> None:
    host.stuck = {"pfc"}
    result = run(settings=WANTED)
    assert result["failed"] and "the value did not stay" in result["msg"] and len(result["failures"]) == 2
    assert Paths(host.root).rdma_settings.exists()


def test_a_setting_that_the_machine_does_not_show_is_a_warning(run: RunModule, host: Host) -> None:
    del host.dcb["ens1"]
    for check in (True, False):
        result = run(check, settings=WANTED)
        line = "rail 1 (rocep1s0/1): pfc: the driver of the network device has no DCB"
        assert line in result["unknown"] and f"rdma_settings: cannot be set: {line}" in str(result["warnings"])


def test_a_node_without_rails_keeps_no_files(run: RunModule, host: Host) -> None:
    run(settings=WANTED)
    for number in (0, 1):
        (host.root / f"sys/class/infiniband/rocep{number}s0").unlink()
    # The cards are there: their RDMA driver has failed.
    failed = run(settings={})
    assert "0000:21:00.0/1 is a rail of the last run, and has no RDMA device" in failed["msg"]
    assert Paths(host.root).rdma_settings.exists()
    for number in (0, 1):
        (host.root / f"sys/bus/pci/devices/0000:{number + 32:02x}:00.0").unlink()
    done = run(settings={})
    left = [path for path in host.root.rglob("*inference-rdma*") if path.is_file() or path.is_symlink()]
    assert done["changed"] and left == [] and not Paths(host.root).rdma_settings.exists()
    assert "/etc/inference/rdma.json" in done["files"]


def test_a_missing_package_makes_the_node_due(run: RunModule, host: Host) -> None:
    run(settings=WANTED)
    result = run(settings=WANTED, packages=["opensm"])
    assert result["due"] and not result["changed"] and result["missing_packages"] == ["opensm"]


def test_a_damaged_record_is_replaced(run: RunModule, host: Host) -> None:
    path = Paths(host.root).rdma_settings
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert "/etc/inference/rdma.json" in run(settings=WANTED)["files"]
    assert json.loads(path.read_text())["schema"] == 1


def test_a_machine_without_rdma_has_no_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    host = Host(tmp_path, rails=0)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.commands, "run", lambda command, timeout: host.run(command))
    result = run_module(module, settings={})
    assert result["changed"] is False and result["rails"] == []


def test_a_time_limit_of_zero_is_refused(run: RunModule) -> None:
    assert run(timeout=0)["msg"].startswith("timeout: 0")


def test_every_result_is_documented(run: RunModule) -> None:
    documented = set(yaml.safe_load(rdma_settings.RETURN))
    assert documented == set(run(settings=WANTED)) - {"changed", "diff", "invocation", "warnings", "failed"}
