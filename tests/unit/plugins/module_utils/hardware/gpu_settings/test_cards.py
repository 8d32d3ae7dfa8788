# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of settings on a card, found before any change."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.gpu_settings.wishes import (
    Machine,
    refusals,
    settings_of,
)


def test_all_mistakes_are_found_at_once_and_nothing_is_changed(machine: Machine) -> None:
    found = refusals(
        machine,
        {
            "power_limit_w": 900,
            "gpu_clocks_mhz": [210, 3000],
            "memory_clocks_mhz": [9999],
            "mig_mode": True,
            "mig_devices": ["3g.20gb", "1g.10gb"],
        },
        {"gpu": "7", "ecc": True},
    )
    assert "power_limit_w: 900: the card allows 200 to 700 W" in found
    assert "gpu_clocks_mhz: [210, 3000]: the card's highest clock is 1980 MHz" in found
    assert "memory_clocks_mhz: [9999]: the card's highest clock is 2619 MHz" in found
    assert "no profile 3g.20gb: did you mean" in found and "7g.80gb" in found
    assert "GPU 7: there is no such GPU; the node has 0 (0000:1b:00.0, GPU-0" in found


@pytest.mark.parametrize(
    ("more", "settings", "words"),
    [
        ({"ecc": ["N/A", "N/A"]}, {"ecc": True}, "no error correction"),
        ({"mig": ["N/A", "N/A"]}, {"mig_mode": True}, "has no MIG"),
        ({"power": None, "limit": None}, {"power_limit_w": 300}, "power limit cannot be set"),
        ({"power": None, "limit": None}, {"power_limit_w": 0}, "power limit cannot be set"),
        ({"compute": "[Not Supported]"}, {"compute_mode": "prohibited"}, "does not report this mode"),
        ({"persistence": "Insufficient Permissions"}, {"persistence_mode": True}, "does not report this mode"),
        ({"mig": ["Enabled", "Enabled"]}, {"compute_mode": "prohibited"}, "MIG mode"),
        ({"compute": "GPU is lost"}, {"compute_mode": "prohibited"}, "has fallen off the bus"),
    ],
)
def test_a_setting_that_a_card_does_not_accept_is_refused(
    machine: Machine, more: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    machine.plug(1, **more)
    assert words in refusals(machine, settings)


@pytest.mark.parametrize("more", [{"ecc": ["N/A", "N/A"]}, {"mig": ["N/A", "N/A"]}])
def test_a_setting_that_a_card_does_not_have_counts_as_off(machine: Machine, more: dict[str, Any]) -> None:
    machine.plug(1, **more)
    assert settings_of(machine.settle({"ecc": False, "mig_mode": False})) == (["ecc"] if "mig" in more else [])


def test_a_card_in_use_keeps_its_mig_devices(machine: Machine) -> None:
    machine.edit(processes=[[4711, "VLLM::EngineCore"]])
    wanted = {"mig_mode": True, "mig_devices": ["7g.80gb"], "power_limit_w": 300}
    assert "mig_mode: True: the card is in use by VLLM::EngineCore (pid 4711): drain" in refusals(machine, wanted)
    # Settings that do not disturb the process are set if no other setting differs.
    assert settings_of(machine.settle({"power_limit_w": 300, "ecc": False})) == ["ecc", "power_limit_w"]
    machine.edit(processes=[])
    machine.settle(wanted)
    machine.edit(processes=[[4712, "VLLM::EngineCore"]])
    machine.calls()
    assert machine.settle(wanted).changes == [], "the card is as wanted"
    assert "mig_devices" in refusals(machine, {**wanted, "mig_devices": ["3g.40gb"]})
    assert "mig_mode: False" in refusals(machine, {"mig_mode": False})


def test_a_layout_that_does_not_fit_is_refused(machine: Machine) -> None:
    def against(*devices: str) -> str:
        return refusals(machine, {"mig_mode": True, "mig_devices": list(devices)})

    assert "can have 2 of 3g.40gb, not 3" in against(*["3g.40gb"] * 3)
    assert "8 compute slices, but the card has 7" in against("4g.40gb", "3g.40gb", "1g.10gb")
    assert "88.75 GiB, but the card has 79.25 GiB" in against("3g.40gb", "3g.40gb", "1g.10gb")
    assert machine.settle({"mig_mode": True, "mig_devices": ["1g.10gb"] * 7}).failures == []
