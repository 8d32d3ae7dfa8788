# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_facts: its subsets. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_facts

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(nvidia_driver_facts)
    assert "node_call" not in given and given["gather_subset"] == ["driver"]
    assert given["library"] == "libcuda.so.1"


def test_an_unknown_subset_is_refused(run_module: RunModule) -> None:
    said = run_module(nvidia_driver_facts, gather_subset=["gpus"])
    assert said["failed"] and "driver, !driver, kernel_check, !kernel_check" in said["msg"]


def test_a_comparison_needs_a_decision(run_module: RunModule) -> None:
    said = run_module(nvidia_driver_facts, compare={"driver": {}})
    assert said["failed"] and "decision" in said["msg"]
