# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of gang_facts on a machine of files, with programs that answer as the real ones do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import desired
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import gang_facts as module
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import Host

RunModule = Callable[..., dict[str, Any]]

RAILS = desired.Desired([desired.Rail("0000:20:00.0/1", "ethernet", mtu=9000, network="10.1.0.0/16")])


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.network, "run", host.run)
    return host


def test_without_settings_all_active_ports_are_rails(run_module: RunModule, host: Host) -> None:
    found = run_module(module, address="192.0.2.7")["network"]
    assert [rail["device"] for rail in found["rails"]] == ["rocep0s0", "rocep1s0"] and found["ports"] == 2
    assert (found["address"], found["netdev"], found["tos"]) == ("192.0.2.7", "eno1", None)


def test_rails_come_from_this_run_or_else_from_the_record(run_module: RunModule, host: Host) -> None:
    files.write_json(Paths(host.root).rdma_settings, RAILS.as_dict())
    (rail,) = run_module(module, address="192.0.2.7")["network"]["rails"]
    assert (rail["netdev"], rail["network"], rail["mtu_active"]) == ("ens0", "10.1.0.0/16", 4096)
    other = desired.Desired([desired.Rail("0000:21:00.0/1", "ethernet")])
    (rail,) = run_module(module, address="192.0.2.7", rails=other.as_dict())["network"]["rails"]
    assert rail["netdev"] == "ens1"


def test_a_damaged_record_counts_as_none_but_damaged_options_fail(run_module: RunModule, host: Host) -> None:
    Paths(host.root).rdma_settings.parent.mkdir(parents=True, exist_ok=True)
    Paths(host.root).rdma_settings.write_text('{"schema": 9}')
    assert len(run_module(module, address="192.0.2.7")["network"]["rails"]) == 2
    assert run_module(module, address="192.0.2.7", rails={"schema": 9})["failed"]
