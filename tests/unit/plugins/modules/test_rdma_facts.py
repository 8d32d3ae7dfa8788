# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module rdma_facts, with fake programs and a temporary root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.facts import Programs
from ansible_collections.baremetal.inference.plugins.modules import rdma_facts as module

Tool = Callable[[str, str], str]
RunModule = Callable[..., dict[str, Any]]

TOOLS = ("rdma", "ibv_devinfo", "ip")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with a soft-RoCE device."""
    files = {
        "node_type": "1: CA",
        "ports/1/state": "4: ACTIVE",
        "ports/1/gid_attrs/ndevs/0": "eth7",
    }
    for name, text in files.items():
        path = tmp_path / "sys/class/infiniband/rxe7" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return tmp_path


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Makes a shell script into a program; returns its path."""

    def make(name: str, script: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def run(run_module: RunModule) -> RunModule:
    """Calls the module in this process: a start of Python would take longer than the rest of a test."""
    return partial(run_module, module)


def run_program(**arguments: Any) -> dict[str, Any]:
    """What the module prints as a program of its own."""
    result = subprocess.run(
        [sys.executable, module.__file__],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert result.stdout, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_the_facts_come_from_the_named_programs(root: Path, tool: Tool) -> None:
    rdma = tool(
        "rdma",
        """case "$*" in
        "-j link") echo '[{"ifname":"rxe7","port":1,"state":"ACTIVE","physical_state":"LINK_UP"}]' ;;
        "-j dev") echo '[{"ifname":"rxe7","protocol":"roce"}]' ;;
        esac""",
    )
    devinfo = tool("ibv_devinfo", "printf 'hca_id: rxe7\\nport: 1\\nmax_mtu: 4096 (5)\\nactive_mtu: 1024 (3)\\n'")
    ip = tool("ip", """echo '[{"ifname":"eth7","addr_info":[{"local":"192.0.2.7","prefixlen":24}]}]'""")
    result = run_program(root=str(root), rdma=rdma, ibv_devinfo=devinfo, ip=ip, _ansible_check_mode=True)
    assert "failed" not in result and result["changed"] is False
    facts = result["ansible_facts"]
    (port,) = facts["rdma_devices"][0]["ports"]
    assert (port["physical_state"], port["link_layer"], port["mtu_active"]) == ("LinkUp", "Ethernet", 1024)
    assert (port["netdev"], port["netdev_addresses"]) == ("eth7", ["192.0.2.7/24"])
    assert all(status["ok"] for status in facts["rdma_tools"].values())


def test_a_program_that_hangs_is_stopped_after_the_time_limit(run: RunModule, root: Path, tool: Tool) -> None:
    start = time.monotonic()
    result = run(root=str(root), rdma=tool("rdma", "exec sleep 60"), timeout=0.5)
    assert time.monotonic() - start < 20
    facts = result["ansible_facts"]
    assert facts["rdma_tools"]["rdma"]["error"]["kind"] == "timeout"
    assert facts["rdma_devices"][0]["ports"][0]["state"] == "ACTIVE"


def test_a_missing_program_is_reported(run: RunModule, root: Path) -> None:
    result = run(root=str(root), rdma="/nowhere/rdma", gather_subset=["tools"])
    assert result["ansible_facts"]["rdma_tools"]["rdma"]["error"] == {
        "kind": "not_installed",
        "message": "/nowhere/rdma is not installed",
    }


@pytest.mark.parametrize("timeout", [0, -1, "nan"])
def test_an_invalid_time_limit_is_refused(run: RunModule, timeout: Any) -> None:
    result = run(timeout=timeout)
    assert result["failed"] and result["msg"].startswith("timeout is ")


def test_without_rdma_no_usual_program_runs_and_below_another_root_only_rdma(root: Path, tmp_path: Path) -> None:
    assert module.programs(None, None, None, tmp_path / "bare") == Programs(None, None, None)
    assert module.programs(None, None, None, root) == Programs("rdma", None, None)
    assert module.programs("/r", "/v", "/i", tmp_path / "bare", "/d") == Programs("/r", "/v", "/i", "/d")


def test_on_a_machine_with_rdma_all_usual_programs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.facts, "has_rdma", lambda root: True)
    assert module.programs(None, None, None, Path("/")) == Programs("rdma", "ibv_devinfo", "ip", "dcb", sys.executable)


def test_every_fact_is_documented(run: RunModule, root: Path) -> None:
    """The keys of nested parts are documented as well, and no other key is."""

    def keys(contains: dict[str, Any]) -> dict[str, Any]:
        return {name: keys(entry["contains"]) if "contains" in entry else None for name, entry in contains.items()}

    documented = keys(yaml.safe_load(module.RETURN)["ansible_facts"]["contains"])
    facts = run(root=str(root), rdma="/nowhere/rdma")["ansible_facts"]
    assert set(documented) == set(facts)
    assert set(documented["rdma_devices"]) == set(facts["rdma_devices"][0])
    assert set(documented["rdma_devices"]["ports"]) == set(facts["rdma_devices"][0]["ports"][0])
    assert set(documented["rdma_iommu"]) == set(facts["rdma_iommu"])
    assert set(documented["rdma_devices"]["pcie"]) == set(module.facts.settings.Pcie.__dataclass_fields__)
    ports = documented["rdma_devices"]["ports"]
    assert set(ports["dcb"]) == set(module.facts.dcb.Dcb.__dataclass_fields__)
    assert set(ports["dcb"]["ets"]) == set(module.facts.dcb.Ets.__dataclass_fields__)
    assert set(ports["congestion"]) == set(module.facts.congestion.Congestion.__dataclass_fields__)
    assert set(ports["netdev_managers"]) == set(module.facts.managers.Manager.__dataclass_fields__)
    assert set(documented["rdma_gpudirect"]) == set(facts["rdma_gpudirect"])
    assert documented["rdma_tools"] == {name: {"ok": None, "error": {"kind": None, "message": None}} for name in TOOLS}
    fields = module.facts.gids.Gid.__dataclass_fields__
    assert set(documented["rdma_devices"]["ports"]["gids"]) == set(fields)
    assert set(documented["rdma_nics_without_driver"]) == set(module.facts.nics.Nic.__dataclass_fields__)
