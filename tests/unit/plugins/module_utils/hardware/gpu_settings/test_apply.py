# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of GPUs: the changes, a second run without changes, and failures."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import NoAnswer, Setter
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.boot import runner
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.gpu_settings.wishes import (
    Machine,
    settings_of,
)

EVERYTHING = {
    "persistence_mode": False,
    "power_limit_w": 450,
    "gpu_clocks_mhz": [210, 1600],
    "memory_clocks_mhz": [2619],
    "ecc": False,
    "mig_mode": True,
    "mig_devices": ["1g.10gb", "3g.40gb", "MIG 3g.40GB"][1:],
}


def test_everything_is_set_once_and_as_predicted(machine: Machine) -> None:
    foreseen = machine.settle(EVERYTHING, check=True)
    assert machine.calls() == []
    result = machine.settle(EVERYTHING)
    assert result.failures == []
    assert [str(one) for one in result.changes] == [str(one) for one in foreseen.changes]
    assert machine.calls() == [
        "-i 0000:1b:00.0 -pm 0",
        "-i 0000:1b:00.0 -e 0",
        "-i 0000:1b:00.0 -mig 1",
        "mig -i 0000:1b:00.0 -cgi 3g.40gb,3g.40gb -C",
        "-i 0000:1b:00.0 -pl 450",
        "-i 0000:1b:00.0 -lgc 210,1600",
        "-i 0000:1b:00.0 -lmc 2619,2619",
    ]
    assert [one["profile"] for one in machine.gpus[0]["instances"]] == ["3g.40gb", "3g.40gb"]
    again = machine.settle(EVERYTHING)
    assert (again.changes, again.failures, machine.calls()) == ([], [], [])
    assert str(again.pending[0]) == "GPU 0 (0000:1b:00.0): ecc is on, and becomes off at the next reset"
    assert foreseen.reboot_reason == result.reboot_reason == again.reboot_reason != ""


def test_after_a_reboot_no_setting_is_pending_and_lost_settings_are_set_again(machine: Machine) -> None:
    machine.settle(EVERYTHING)
    machine.calls()
    machine.reboot()
    result = machine.settle(EVERYTHING)
    assert settings_of(result) == ["mig_mode", "mig_devices", "power_limit_w", "gpu_clocks_mhz", "memory_clocks_mhz"]
    assert result.pending == []
    assert machine.settle(EVERYTHING).changes == []


def test_settings_that_are_not_declared_stay(machine: Machine) -> None:
    machine.edit(compute="Prohibited", limit=333, locked={"gpu": [1, 2]})
    assert machine.settle({}).changes == []
    assert machine.calls() == []


def test_a_card_that_is_reset_for_mig_mode_gets_its_other_settings_again(machine: Machine) -> None:
    machine.plug(1, architecture="Ampere")
    rest = {"power_limit_w": 300, "gpu_clocks_mhz": [210, 1000]}
    machine.settle(rest)
    result = machine.settle({**rest, "mig_mode": True})
    assert settings_of(result) == ["mig_mode", "power_limit_w", "gpu_clocks_mhz"]
    assert (machine.gpus[0]["limit"], machine.gpus[0]["locked"]) == (300, {"gpu": [210, 1000]})


def test_locked_clocks_are_recorded_until_the_driver_is_loaded_again(machine: Machine) -> None:
    assert settings_of(machine.settle({"gpu_clocks_mhz": [1600]})) == ["gpu_clocks_mhz"]
    assert machine.settle({"gpu_clocks_mhz": [1600]}).changes == []
    assert machine.settle({"gpu_clocks_mhz": [1600]}, check=True).changes == []
    machine.driver += 1
    assert settings_of(machine.settle({"gpu_clocks_mhz": [1600]})) == ["gpu_clocks_mhz"]
    (machine.root / "clocks.json").write_text("damaged")
    assert settings_of(machine.settle({"gpu_clocks_mhz": []})) == ["gpu_clocks_mhz"]
    assert machine.gpus[0]["locked"] == {}
    assert machine.settle({"gpu_clocks_mhz": []}).changes == []


def test_a_card_that_vanishes_is_a_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.plug(2)
    inspect, lists = Setter.inspect, []

    def vanishing(setter: Setter) -> tuple[list[Any], list[Any]]:
        cards, problems = inspect(setter)
        lists.append(cards)
        return (cards if len(lists) == 1 else cards[1:]), problems

    monkeypatch.setattr(Setter, "inspect", vanishing)
    result = machine.settle({"power_limit_w": 300})
    assert result.failures == ["GPU 0 (0000:1b:00.0): nvidia-smi does not list this card any more: see dmesg"]
    assert [one.card.gpu.index for one in result.changes] == [1]


@pytest.mark.parametrize(
    ("option", "settings"),
    [
        ("-pl", {"power_limit_w": 300}),
        ("-lmc", {"memory_clocks_mhz": [2619]}),
        ("-e", {"ecc": False}),
        ("-c", {"compute_mode": "prohibited"}),
        ("-mig", {"mig_mode": True, "mig_devices": ["7g.80gb"]}),
    ],
)
@pytest.mark.parametrize("kind", ["deaf", "failing"])
def test_a_card_that_refuses_a_setting_is_a_failure(
    machine: Machine, kind: str, option: str, settings: dict[str, Any]
) -> None:
    """nvidia-smi may refuse with exit status 0. The other card is set. The refused change does not count as made."""
    machine.plug(2)
    machine.edit(0, **{kind: [option]})
    result = machine.settle(settings)
    assert len(result.failures) == 1
    assert "GPU 0 (0000:1b:00.0)" in result.failures[0]
    assert ("not supported" if kind == "deaf" else "Insufficient Permissions") in result.failures[0]
    assert {one.card.gpu.index for one in result.changes} == {1}
    assert {one.card.gpu.index for one in result.pending} <= {1}
    # The next run tries again.
    assert len(machine.settle(settings).failures) == 1


def test_at_boot_a_bad_card_does_not_stop_the_others(machine: Machine) -> None:
    machine.plug(2)
    machine.edit(1, power=[100, 250, 250], limit=250)
    result = machine.settle({"power_limit_w": 400}, {"gpu": "9", "ecc": True}, all_or_nothing=False)
    assert [one["limit"] for one in machine.gpus] == [400, 250]
    assert len(result.failures) == 2
    assert "GPU 9: there is no such GPU" in result.failures[0] and "allows 100 to 250 W" in result.failures[1]


def test_the_error_without_gpus_has_the_kind_of_the_failure(machine: Machine) -> None:
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    machine.put([], broken=words)
    with pytest.raises(NoAnswer, match="driver_not_loaded"):
        machine.settle({"ecc": True})
    machine.nvidia_smi = runner("/nowhere/nvidia-smi", 300)
    with pytest.raises(NoAnswer, match="not_installed"):
        machine.settle({"ecc": True})
