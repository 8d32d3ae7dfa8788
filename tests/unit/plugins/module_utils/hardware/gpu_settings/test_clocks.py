# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of locked clocks, and when it is no longer valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.clocks import Clocks, loading

GPU = Gpu(uuid="GPU-1", pci_bus_id="0000:1b:00.0")
OTHER = Gpu(uuid=None, pci_bus_id="0000:2b:00.0")


def test_locks_are_known_until_the_driver_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "run/clocks.json"
    clocks = Clocks.read(path, 7)
    clocks.remember(GPU, "gpu_clocks_mhz", (210, 1410))
    clocks.remember(OTHER, "memory_clocks_mhz", (1215,))
    path.parent.mkdir()
    clocks.write()
    assert Clocks.read(path, 7).of(GPU).gpu_clocks_mhz == (210, 1410)
    assert Clocks.read(path, 7).of(OTHER).memory_clocks_mhz == (1215,)
    assert Clocks.read(path, 8).of(GPU).gpu_clocks_mhz is None


def test_after_a_reset_the_locks_are_unknown(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path / "clocks.json", 7)
    clocks.remember(GPU, "gpu_clocks_mhz", (210, 1410))
    clocks.forget(GPU)
    clocks.forget(OTHER)
    assert clocks.of(GPU).gpu_clocks_mhz is None


def test_without_locks_no_file_is_made_and_an_old_file_loses_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "clocks.json"
    Clocks(path, 7).write()
    assert not path.exists()
    path.write_text("old")
    Clocks(path, 7).write()
    assert '"gpus": {}' in path.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 2, "driver": 7, "gpus": {"GPU-1": {}}}',
        '{"schema": 1, "driver": 7}',
        '{"schema": 1, "driver": 7, "gpus": []}',
        '{"schema": 1, "driver": 7, "gpus": {"GPU-1": 5}}',
        '{"schema": 1, "driver": 7, "gpus": {"GPU-1": {"gpu_clocks_mhz": 5}}}',
        '{"schema": 1, "driver": 7, "gpus": {"GPU-1": {"of_another_version": [5]}}}',
    ],
)
def test_with_a_damaged_file_the_locks_are_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "clocks.json").write_text(text)
    assert Clocks.read(tmp_path / "clocks.json", 7).of(GPU).gpu_clocks_mhz is None


def test_the_nvidia_module_has_a_number_while_it_is_loaded(tmp_path: Path) -> None:
    assert loading(tmp_path) is None
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    assert loading(tmp_path) == (tmp_path / "sys/module/nvidia").stat().st_ino
