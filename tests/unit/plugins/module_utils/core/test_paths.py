# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of a node. They do not change, because nodes of earlier versions have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths

ETC, STATE, UNITS = "etc/inference", "var/lib/inference", "etc/systemd/system"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda p: p.etc, ETC),
        (lambda p: p.state, STATE),
        (lambda p: p.probe("main"), f"{STATE}/probe/main.json"),
        (lambda p: p.doctor_settings, f"{ETC}/doctor.json"),
        (lambda p: p.metrics("gpus"), "var/lib/prometheus/node-exporter/inference-gpus.prom"),
        (lambda p: p.probe_metrics, "var/lib/prometheus/node-exporter/inference-probe.prom"),
        (lambda p: p.recovery_requests, "run/inference/recover"),
        (lambda p: p.command, "usr/local/bin/inferctl"),
        (lambda p: p.library, "usr/local/lib/inference"),
        (lambda p: p.unit("main"), f"{UNITS}/vllm@main.service"),
        (lambda p: p.target, f"{UNITS}/inference.target"),
        (lambda p: p.agent_unit, f"{UNITS}/inference-agent.service"),
        (lambda p: p.release("main", 3), f"{STATE}/releases/main/3"),
    ],
)
def test_paths_do_not_change(found: object, expected: str) -> None:
    assert callable(found)
    assert found(Paths(Path("/test"))) == Path("/test") / expected
    assert found(Paths()) == Path("/") / expected


def test_each_unit_has_its_path() -> None:
    node = Paths(Path("/test"))
    assert list(node.metrics_units) == [
        "inference-metrics@.service",
        "inference-metrics@node.timer",
        "inference-metrics@doctor.timer",
    ]
    assert list(node.recovery_units) == [
        "inference-recovery@.service",
        "inference-recovery.service",
        "inference-recovery.path",
    ]
    assert list(node.swap_units) == ["inference-swap@.service", "inference-gates.service"]
    for name, path in {**node.metrics_units, **node.recovery_units, **node.swap_units}.items():
        assert path == Path("/test") / UNITS / name


def test_the_names_of_units_and_containers_do_not_change() -> None:
    assert paths.unit_name("main") == "vllm@main.service"
    assert paths.journal_tag("main") == "vllm@main"
    assert paths.container_name("main") == "vllm-main"
    assert paths.recovery_unit("main") == "inference-recovery@main.service"
