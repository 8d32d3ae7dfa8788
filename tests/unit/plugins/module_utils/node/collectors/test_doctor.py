# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's results as metrics."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import doctor
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import FAIL, OK, Result

from ..conftest import write
from .conftest import collect


def test_each_check_and_the_verdict_have_metrics(tmp_path: Path) -> None:
    write(
        tmp_path / "etc/inference/doctor.json", '{"schema": 1, "off": ["driver", "rdma", "system", "docker", "engine"]}'
    )
    text = collect("doctor", Paths(tmp_path))
    assert 'inference_doctor_check_status{check="gpu-count"} 0\n' in text and "docker" not in text
    assert len(re.findall(r"^inference_doctor_verdict\{", text, re.MULTILINE)) == 4


def test_the_worst_of_all_checks_is_the_verdict() -> None:
    samples = Samples(doctor.HELP)
    doctor.render([Result("a", OK, "secret", ""), Result("b", FAIL, "secret", "")], samples)
    text = samples.text()
    assert 'inference_doctor_check_status{check="a"} 0\n' in text
    assert 'inference_doctor_check_status{check="b"} 3\n' in text
    assert 'inference_doctor_verdict{verdict="fail"} 1\n' in text and 'verdict="ok"} 0\n' in text
    assert "secret" not in text
