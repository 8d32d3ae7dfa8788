# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps `make test` runs beside each other."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("tool_test", str(ROOT / "tests/tools/test"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("full", "scenario"), [(False, None), (True, None), (True, "swap"), (True, "recovery")])
def test_every_step_runs_once(tool: ModuleType, full: bool, scenario: str | None) -> None:
    steps = list(tool.plan(full, scenario))
    stages = tool.stages(steps)
    assert sorted(name for stage in stages for lane in stage for name in lane) == sorted(steps)
    assert all(lane for stage in stages for lane in stage)


def test_scenarios_that_run_beside_each_other_have_nodes_of_other_names(tool: ModuleType) -> None:
    for stage in tool.stages(list(tool.plan(True, None))):
        names = [{tool.NODES.get(name, "deb") for name in lane if name.startswith("molecule ")} for lane in stage]
        # The emulated machine is no container; backup is the only one of containers in its stage.
        assert len(stage) == 1 or not set.intersection(*names), stage
