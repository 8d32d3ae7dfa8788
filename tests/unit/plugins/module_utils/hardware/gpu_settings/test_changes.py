# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls of nvidia-smi in their order, and settings that wait for a reset."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.cards import Card
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.changes import (
    modes,
    others,
    pending,
    shown,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import Settings
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.gpu_settings.wishes import (
    Machine,
    settings_of,
)


def test_an_override_sets_one_gpu_differently_from_the_others(machine: Machine) -> None:
    machine.plug(4)
    result = machine.settle(
        {"power_limit_w": 500},
        {"gpu": "1", "power_limit_w": 300},
        {"gpu": "0000:1D:00.0", "compute_mode": "exclusive_process"},
        {"gpu": "GPU-00000000-1111-4222-8333-000000000003", "power_limit_w": 0},
    )
    assert [one["limit"] for one in machine.gpus] == [500, 300, 500, 700]
    assert [one["compute"] for one in machine.gpus] == ["Default", "Default", "Exclusive_Process", "Default"]
    assert [one.card.gpu.index for one in result.changes] == [0, 1, 2, 2]


def test_another_mig_layout_replaces_the_old_layout(machine: Machine) -> None:
    machine.settle({"mig_mode": True, "mig_devices": ["1g.10gb"] * 7})
    machine.calls()
    # In this order, the devices do not fit: the largest must be created first.
    result = machine.settle({"mig_mode": True, "mig_devices": ["1g.10gb", "2g.20gb", "3g.40gb"]})
    assert result.failures == []
    assert machine.calls() == [
        "mig -i 0000:1b:00.0 -dci",
        "mig -i 0000:1b:00.0 -dgi",
        "mig -i 0000:1b:00.0 -cgi 3g.40gb,2g.20gb,1g.10gb -C",
    ]
    assert machine.settle({"mig_mode": True, "mig_devices": ["3g.40gb", "1g.10gb", "2g.20gb"]}).changes == []
    assert settings_of(machine.settle({"mig_mode": True, "mig_devices": []})) == ["mig_devices"]
    assert machine.gpus[0]["instances"] == []


def test_a_gpu_instance_with_other_compute_instances_is_replaced(machine: Machine) -> None:
    whole = {"number": 1, "profile": "7g.80gb", "computes": []}
    for computes in ([], ["1c.7g.80gb", "1c.7g.80gb"]):
        machine.plug(1, mig=["Enabled"] * 2, instances=[{**whole, "computes": computes}])
        assert machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]}).failures == []
        assert machine.gpus[0]["instances"][0]["computes"] == ["7g.80gb"]


def test_mig_off_removes_the_mig_devices(machine: Machine) -> None:
    machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]})
    result = machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]}, {"gpu": "0", "mig_mode": False})
    assert (settings_of(result), result.failures) == (["mig_mode"], [])
    assert machine.gpus[0]["mig"] == ["Disabled", "Disabled"]


def test_the_mig_mode_of_a_held_card_changes_at_the_next_reset(machine: Machine) -> None:
    """Before Hopper, a card that a program uses changes its mode at the next reset. Then its devices are created."""
    machine.plug(1, architecture="Ampere", held=True)
    wanted = {"mig_mode": True, "mig_devices": ["7g.80gb"]}
    result = machine.settle(wanted)
    assert (settings_of(result), result.failures) == (["mig_mode"], [])
    assert result.reboot_reason == "GPU 0 (0000:1b:00.0): mig_mode is off, and becomes on at the next reset"
    assert machine.settle(wanted).changes == []
    machine.reboot()
    result = machine.settle(wanted)
    assert (settings_of(result), result.pending, result.failures) == (["mig_devices"], [], [])


GPU = Gpu(index=3, uuid="GPU-a", pci_bus_id="0000:1b:00.0", mig_mode="disabled", power_limit_w=700.0)


def test_clocks_are_unlocked_by_their_own_option() -> None:
    wanted = Settings(gpu_clocks_mhz=(), memory_clocks_mhz=(2619,))
    changes = list(others(Card(GPU, wanted, locked=Settings(gpu_clocks_mhz=(210, 1600)))))
    assert [one.calls for one in changes] == [
        (("-i", "0000:1b:00.0", "-rgc"),),
        (("-i", "0000:1b:00.0", "-lmc", "2619,2619"),),
    ]
    assert [str(one) for one in changes] == [
        "GPU 3 (0000:1b:00.0): gpu_clocks_mhz: 210, 1600 -> none",
        "GPU 3 (0000:1b:00.0): memory_clocks_mhz: not known -> 2619",
    ]


def test_changes_and_pending_settings_are_plain_data() -> None:
    (change,) = modes(Card(GPU, Settings(mig_mode=True)))
    where = {"index": 3, "pci_bus_id": "0000:1b:00.0"}
    assert change.as_dict() == {**where, "setting": "mig_mode", "before": False, "after": True}
    assert change.key == ("GPU 3 (0000:1b:00.0)", "mig_mode")
    (waiting,) = pending(Card(Gpu(**{**vars(GPU), "mig_mode_pending": "enabled"}), Settings(mig_mode=True)))
    assert waiting.as_dict() == {**where, "setting": "mig_mode", "now": False, "wanted": True}
    assert str(waiting) == "GPU 3 (0000:1b:00.0): mig_mode is off, and becomes on at the next reset"


def test_a_card_without_an_address_is_named_by_its_uuid() -> None:
    (change,) = others(Card(Gpu(uuid="GPU-a", power_limit_w=700.0), Settings(power_limit_w=450.5)))
    assert change.calls == (("-i", "GPU-a", "-pl", "450.5"),)


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, "on"), (False, "off"), ([], "none"), ([1, 2], "1, 2"), (None, "not known"), (450.0, "450"), ("x", "x")],
)
def test_values_are_shown_as_words(value: Any, words: str) -> None:
    assert shown(value) == words
