# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which recordings of real machines the tests read, and which they leave, so that none is forgotten."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import report, topology
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import verbs

LEFT = {
    "ibstat": "sysfs has it all, and needs no program",
    "ibstatus": "sysfs has it all, and needs no program",
    "nvidia_smi_csv": "the report in XML has these values, each with its name",
    "nvidia_smi_q_text": "the report in XML is the same, and made for programs",
    "nvidia_smi_table": "the report in XML has it all; columns are cut off in the table",
}
"""What no parser is meant to read, and why."""


@pytest.mark.skipif(not os.environ.get("INFERENCE_SAMPLES"), reason="INFERENCE_SAMPLES is not set")
def test_every_category_is_read_or_left_for_a_reason() -> None:
    recordings = json.loads((Path(os.environ["INFERENCE_SAMPLES"]) / "expected.json").read_text())
    there = {name.partition("/")[0] for name in recordings}
    others = [path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]
    marks = re.findall(r"^@pytest\.mark\.recordings\((.*)\)$", "\n".join(map(Path.read_text, others)), re.MULTILINE)
    read = {category for mark in marks for category in re.findall(r'"(\w+)"', mark)}
    assert there - read - set(LEFT) == set(), "no test reads them, and no reason is given"
    assert read & set(LEFT) == set(), "a test reads them after all"


@pytest.mark.recordings(*LEFT)
def test_no_parser_finds_anything_in_recordings_that_are_left(recording: Any) -> None:
    text = recording.text()
    assert report.parse(text).gpus == []
    assert verbs.mtus(text) == {}
    assert topology.parse(text) is None
