# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery of machines whose GPUs are recorded: from the report of nvidia-smi to an inventory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.inventory import discover
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import facts

from .test_inventory import IMAGE, Model, Results, check, options

SERVES = {
    "h100-80gb-hbm3-x8__580.105.08__dtd13": "8 x H100-80GB",
    "l40s__595.91.07__dtd13": "1 x L40S",
    "v100s-pcie-32gb-x8__460.73.01__dtd11": "8 x V100S-32GB",
    "EDITED_a100-pcie-40gb-x8-two-mig__535.129.03__dtd12": "8 x A100-PCIe-40GB",
    "rtx-pro-6000-blackwell-maxq__590.44.01__dtd13": "1 x RTX-PRO-6000-Max-Q",
}
"""Recorded machines on which a model of 8 billion parameters fits, and their GPUs."""


@pytest.mark.recordings("nvidia_smi_xml")
def test_each_recorded_machine_gets_an_inventory_that_the_roles_accept(
    recording: Any, tmp_path: Path, results: Results, model: Model
) -> None:
    outcome = Outcome(0, recording.text())
    gpu = json.loads(json.dumps(facts.gather(tmp_path, lambda _command: outcome, "nvidia-smi", ["nvidia_smi"], 5)))
    found = discover({"10.0.0.11": {**results("l40s"), "gpu": gpu}}, options(model("qwen3-8b"), image=IMAGE))
    got = check(found, "l40s-11", gpu["gpus"])
    assert f"{recording.expected['gpu_count']} x " in found.lines[0]
    cards = SERVES.get(Path(recording.name).stem)
    if cards:
        assert cards in found.lines[0] and got["nvidia_driver_version"] == "580"
        assert got["instances"] == [{"name": "main", "model": "qwen3-8b", "port": 5005, "gpus": 1}]
    elif not got["instances"]:
        # The report has the reason.
        assert any(line.startswith("l40s-11: serves nothing: ") for line in found.lines)
