# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's findings as metrics."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.health import VERDICTS
from ansible_collections.baremetal.inference.plugins.module_utils.node.textfile import (
    InstanceMetrics,
    LockMetrics,
    render,
)


def test_an_instance_has_metrics_of_its_verdict_and_drain() -> None:
    one = InstanceMetrics("main", "hung", False, True, since=1777636800.0, checked=1777636810.5, latency=0.012)
    lines = render([one, InstanceMetrics("side", "unknown", True, False)], 1777636820.7).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert samples[0] == "inference_agent_timestamp_seconds 1777636821"
    for sample in (
        'inference_probe_verdict{name="main",verdict="hung"} 1',
        'inference_probe_stale{name="side"} 1',
        'inference_probe_since_timestamp_seconds{name="main"} 1777636800',
        'inference_probe_timestamp_seconds{name="main"} 1777636810.500',
        'inference_probe_latency_seconds{name="main"} 0.012',
        'inference_drained{name="main"} 1',
        'inference_drained{name="side"} 0',
        "inference_lock_held 0",
        "inference_lock_stale 0",
    ):
        assert sample in samples
    assert not [sample for sample in samples if sample.startswith('inference_probe_latency_seconds{name="side"')]
    # The text format of Prometheus requires that all samples of a metric follow its type.
    families = [re.match(r"\w+", sample)[0] for sample in samples]  # type: ignore[index]
    assert list(dict.fromkeys(families)) == [line.split()[2] for line in lines if line.startswith("# TYPE")]


def test_only_an_instance_in_a_swap_has_metrics_of_a_swap() -> None:
    """Without a swap, an instance has no series of a swap, so an alert ends with the swap."""
    main = InstanceMetrics("main", "healthy", False, True, swap="stuck", swap_since=1777636800.0)
    samples = render([main, InstanceMetrics("side", "healthy", False, False)], 1777636820.7).splitlines()
    assert 'inference_swap{name="main",step="stuck"} 1' in samples
    assert 'inference_swap_since_timestamp_seconds{name="main"} 1777636800' in samples
    assert not [line for line in samples if line.startswith("inference_swap") and "side" in line]


def test_the_lock_has_metrics_without_its_owner() -> None:
    """`held` and `stale` have one series each, without labels, so a reboot does not begin another series."""
    text = render([], 0, LockMetrics("baremetal.inference.maintenance"))
    assert "inference_lock_held 1\n" in text and "inference_lock_stale 0\n" in text
    assert 'inference_lock_info{playbook="baremetal.inference.maintenance"} 1\n' in text
    text = render([], 0, LockMetrics("baremetal.inference.maintenance", stale=True))
    assert "inference_lock_held 0\n" in text and "inference_lock_stale 1\n" in text


@given(st.text())
def test_any_name_is_one_label(name: str) -> None:
    text = render([InstanceMetrics(name, "healthy", False, False)], 0)
    (line,) = [line for line in text.split("\n") if line.endswith('verdict="healthy"} 1')]
    found = re.fullmatch(r'inference_probe_verdict\{name="((?:[^"\\\n]|\\.)*)",verdict="healthy"\} 1', line)
    assert found is not None
    unescaped = re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), found[1])
    assert unescaped == name
    assert text.count("inference_probe_verdict{") == len(VERDICTS)
