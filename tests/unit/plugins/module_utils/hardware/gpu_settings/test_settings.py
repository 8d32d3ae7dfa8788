# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared settings of GPUs, also on the cards of recorded machines."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import report
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.cards import Card
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.changes import STAGES, pending
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import (
    Settings,
    Wanted,
    names,
)


def mistakes(settings: dict[str, Any], *overrides: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in Wanted.of(settings, overrides).problems()]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"power_limit_w": -1}, "must be 0, the card's default"),
        ({"power_limit_w": float("nan")}, "must be 0, the card's default"),
        ({"gpu_clocks_mhz": [1600, 210]}, "must be lowest and highest clock"),
        ({"memory_clocks_mhz": [1, 2, 3]}, "must be lowest and highest clock"),
        ({"gpu_clocks_mhz": [-1]}, "must be lowest and highest clock"),
        ({"compute_mode": "exclusive_thread"}, "exclusive_process"),
        ({"mig_mode": True, "mig_devices": ["9"]}, "must be a profile such as 3g.40gb"),
        ({"mig_devices": ["3g.40gb"]}, "set mig_mode, too"),
        ({"mig_mode": False, "mig_devices": ["3g.40gb"]}, "set mig_mode, too"),
        ({"mig_mode": True, "compute_mode": "prohibited"}, "MIG mode allows only default"),
    ],
)
def test_settings_that_no_card_accepts_are_mistakes(settings: dict[str, Any], words: str) -> None:
    assert len(mistakes(settings)) == 1 and words in mistakes(settings)[0]
    assert mistakes(settings)[0].startswith("all GPUs: ")
    assert mistakes({}, {"gpu": "0", **settings})[0].startswith("GPU 0: ")


def test_good_settings_have_no_mistakes() -> None:
    assert mistakes({"mig_mode": True, "mig_devices": ["MIG 1g.10gb+me", "3g.40GB", "1g.24gb-me"]}) == []
    assert mistakes({"gpu_clocks_mhz": [], "memory_clocks_mhz": [0, 5], "power_limit_w": 0}) == []
    assert mistakes({"mig_mode": True, "mig_devices": ["7g.80gb"]}, {"gpu": "0", "mig_mode": False}) == []
    assert mistakes({"mig_mode": True}, {"gpu": "0", "mig_devices": ["7g.80gb"]}) == []


def test_an_empty_override_and_a_second_override_of_a_gpu_are_problems() -> None:
    assert mistakes({"ecc": True}, {"gpu": "0"}) == ["GPU 0: its entry has no settings: remove the entry"]
    text = '<nvidia_smi_log><gpu id="00000000:1B:00.0"><uuid>GPU-a</uuid></gpu></nvidia_smi_log>'
    wanted = Wanted.of({}, [{"gpu": "0", "ecc": True}, {"gpu": "gpu-A", "ecc": False}, {"gpu": "1b:00.0", "ecc": True}])
    chosen, problems = wanted.select(report.parse(text).gpus)
    assert [str(problem).partition(":")[0] for problem in problems] == ["GPU gpu-A", "GPU 1b"]
    assert [one.given() for _gpu, one in chosen] == [{"ecc": True}]


def test_an_empty_text_names_no_gpu_without_a_uuid() -> None:
    assert not names("", Gpu(index=0, pci_bus_id="0000:1b:00.0"))


def test_a_gpu_whose_override_turns_mig_off_gets_no_mig_devices() -> None:
    every = Settings.of({"mig_mode": True, "mig_devices": ["7g.80gb"], "ecc": True})
    assert every.overridden_by(Settings(mig_mode=False)).given() == {"mig_mode": False, "ecc": True}


def test_settings_are_read_back_from_their_dictionaries() -> None:
    wanted = Wanted.of({"gpu_clocks_mhz": [], "mig_mode": False}, [{"gpu": 1, "mig_devices": ["MIG 1g.5gb"]}])
    assert Wanted.of(**wanted.as_dict()) == wanted
    assert wanted.as_dict()["overrides"] == [{"gpu": "1", "mig_devices": ("1g.5gb",)}]
    assert not Wanted.of({"ecc": None}, [])


@pytest.mark.recordings("nvidia_smi_xml")
def test_a_recorded_card_with_its_own_values_needs_no_change(recording: Any) -> None:
    """Settings with the values of a card change nothing. Settings that the card does not have are refused."""
    for gpu in report.parse(recording.text()).gpus:
        bare = Card(gpu, Settings())
        given: dict[str, Any] = {
            "persistence_mode": None if gpu.persistence_mode is None else gpu.persistence_mode == "enabled",
            "power_limit_w": bare.power_limit,
            "ecc": bare.ecc_next,
            "mig_mode": bare.mig_next,
            "compute_mode": None if gpu.compute_mode is None else gpu.compute_mode.casefold(),
        }
        card = Card(gpu, Settings(**given))
        assert [str(change) for stage in STAGES for change in stage(card)] == []
        if gpu.power_limit_min_w is not None and not gpu.lost:
            assert [problem.key for problem in card.problems()] in ([], ["compute_mode"])
        assert len(list(pending(card))) == sum(
            now is not None and now != then
            for now, then in ((gpu.ecc.current, gpu.ecc.pending), (gpu.mig_mode, gpu.mig_mode_pending))
            if then is not None
        )
        if gpu.lost:
            continue
        impossible = Card(gpu, Settings(power_limit_w=100_000, gpu_clocks_mhz=(99_999,)))
        keys = {problem.key for problem in impossible.problems()}
        assert "power_limit_w" in keys
        assert ("gpu_clocks_mhz" in keys) == (gpu.clocks.graphics_max_mhz is not None)
        if gpu.mig_mode is None:
            assert "the card has no MIG" in str(Card(gpu, Settings(mig_mode=True)).problems()[0])
