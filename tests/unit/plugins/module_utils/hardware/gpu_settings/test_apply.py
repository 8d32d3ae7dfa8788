# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting GPUs: what is done, that it is done once, and what is said where it cannot be done."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import NoAnswer

Machine = Any

EVERYTHING = {
    "persistence_mode": False,
    "power_limit_w": 450,
    "gpu_clocks_mhz": [210, 1600],
    "memory_clocks_mhz": [2619],
    "ecc": False,
    "mig_mode": True,
    "mig_devices": ["1g.10gb", "3g.40gb", "MIG 3g.40GB"][1:],
}


def settings_of(result: Any) -> list[str]:
    return [change.setting for change in result.changes]


def refusals(machine: Machine, settings: dict[str, Any], *overrides: dict[str, Any]) -> str:
    """What is said against settings, before anything is changed."""
    before = machine.gpus
    for check in (True, False):
        with pytest.raises(InputError) as error:
            machine.settle(settings, *overrides, check=check)
    assert machine.gpus == before and machine.calls() == []
    return str(error.value)


def test_everything_is_set_as_foreseen_and_once(machine: Machine) -> None:
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
    assert str(again.pending[0]) == "GPU 0 (0000:1b:00.0): ecc is on, and off after the next reset"
    assert foreseen.reboot_reason == result.reboot_reason == again.reboot_reason != ""


def test_a_reboot_makes_what_is_pending_and_the_rest_comes_back(machine: Machine) -> None:
    machine.settle(EVERYTHING)
    machine.calls()
    machine.reboot()
    result = machine.settle(EVERYTHING)
    assert settings_of(result) == ["mig_mode", "mig_devices", "power_limit_w", "gpu_clocks_mhz", "memory_clocks_mhz"]
    assert result.pending == []
    assert machine.settle(EVERYTHING).changes == []


def test_what_is_not_named_is_left_alone(machine: Machine) -> None:
    machine.edit(compute="Prohibited", limit=333, locked={"gpu": [1, 2]})
    assert machine.settle({}).changes == []
    assert machine.calls() == []


def test_one_gpu_differs_from_the_others(machine: Machine) -> None:
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


def test_all_mistakes_are_told_at_once_and_nothing_is_changed(machine: Machine) -> None:
    said = refusals(
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
    assert "power_limit_w: 900: the card takes 200 to 700 W" in said
    assert "gpu_clocks_mhz: [210, 3000]: the card goes up to 1980 MHz" in said
    assert "memory_clocks_mhz: [9999]: the card goes up to 2619 MHz" in said
    assert "no profile 3g.20gb: did you mean" in said and "7g.80gb" in said
    assert "GPU 7: there is none of that name; the node has 0 (0000:1b:00.0, GPU-0" in said


@pytest.mark.parametrize(
    ("more", "settings", "words"),
    [
        ({"ecc": ["N/A", "N/A"]}, {"ecc": True}, "no error correction"),
        ({"mig": ["N/A", "N/A"]}, {"mig_mode": True}, "has no MIG"),
        ({"power": None, "limit": None}, {"power_limit_w": 300}, "does not let its limit be set"),
        ({"power": None, "limit": None}, {"power_limit_w": 0}, "does not let its limit be set"),
        ({"compute": "[Not Supported]"}, {"compute_mode": "prohibited"}, "does not tell"),
        ({"persistence": "Insufficient Permissions"}, {"persistence_mode": True}, "does not tell"),
        ({"mig": ["Enabled", "Enabled"]}, {"compute_mode": "prohibited"}, "MIG mode"),
        ({"compute": "GPU is lost"}, {"compute_mode": "prohibited"}, "does not answer any more"),
    ],
)
def test_what_a_card_has_not(machine: Machine, more: dict[str, Any], settings: dict[str, Any], words: str) -> None:
    machine.plug(1, **more)
    assert words in refusals(machine, settings)


@pytest.mark.parametrize("more", [{"ecc": ["N/A", "N/A"]}, {"mig": ["N/A", "N/A"]}])
def test_what_a_card_has_not_is_off(machine: Machine, more: dict[str, Any]) -> None:
    machine.plug(1, **more)
    assert settings_of(machine.settle({"ecc": False, "mig_mode": False})) == (["ecc"] if "mig" in more else [])


def test_a_card_in_use_is_not_cut(machine: Machine) -> None:
    machine.edit(processes=[[4711, "VLLM::EngineCore"]])
    wanted = {"mig_mode": True, "mig_devices": ["7g.80gb"], "power_limit_w": 300}
    assert "mig_mode: True: the card is in use by VLLM::EngineCore (pid 4711): drain" in refusals(machine, wanted)
    # What disturbs nobody is set all the same where it is all that differs.
    assert settings_of(machine.settle({"power_limit_w": 300, "ecc": False})) == ["ecc", "power_limit_w"]
    machine.edit(processes=[])
    machine.settle(wanted)
    machine.edit(processes=[[4712, "VLLM::EngineCore"]])
    machine.calls()
    assert machine.settle(wanted).changes == [], "it is as wanted"
    assert "mig_devices" in refusals(machine, {**wanted, "mig_devices": ["3g.40gb"]})
    assert "mig_mode: False" in refusals(machine, {"mig_mode": False})


def test_another_layout_replaces_the_old_one(machine: Machine) -> None:
    machine.settle({"mig_mode": True, "mig_devices": ["1g.10gb"] * 7})
    machine.calls()
    # In this order they do not fit: the largest has to be made first.
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


def test_a_gpu_instance_that_holds_something_else_is_made_anew(machine: Machine) -> None:
    whole = {"number": 1, "profile": "7g.80gb", "computes": []}
    for computes in ([], ["1c.7g.80gb", "1c.7g.80gb"]):
        machine.plug(1, mig=["Enabled"] * 2, instances=[{**whole, "computes": computes}])
        assert machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]}).failures == []
        assert machine.gpus[0]["instances"][0]["computes"] == ["7g.80gb"]


def test_mig_off_takes_its_devices_along(machine: Machine) -> None:
    machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]})
    result = machine.settle({"mig_mode": True, "mig_devices": ["7g.80gb"]}, {"gpu": "0", "mig_mode": False})
    assert (settings_of(result), result.failures) == (["mig_mode"], [])
    assert machine.gpus[0]["mig"] == ["Disabled", "Disabled"]


def test_a_layout_that_does_not_fit(machine: Machine) -> None:
    def against(*devices: str) -> str:
        return refusals(machine, {"mig_mode": True, "mig_devices": list(devices)})

    assert "takes 2 of 3g.40gb, not 3" in against(*["3g.40gb"] * 3)
    assert "8 slices to compute, and the card has 7" in against("4g.40gb", "3g.40gb", "1g.10gb")
    assert "88.75 GiB, and the card has 79.25 GiB" in against("3g.40gb", "3g.40gb", "1g.10gb")
    assert machine.settle({"mig_mode": True, "mig_devices": ["1g.10gb"] * 7}).failures == []


def test_mig_mode_that_waits_for_a_reset(machine: Machine) -> None:
    """Before Hopper a card that something watches takes the mode at its next reset, and then its devices."""
    machine.plug(1, architecture="Ampere", held=True)
    wanted = {"mig_mode": True, "mig_devices": ["7g.80gb"]}
    result = machine.settle(wanted)
    assert (settings_of(result), result.failures) == (["mig_mode"], [])
    assert result.reboot_reason == "GPU 0 (0000:1b:00.0): mig_mode is off, and on after the next reset"
    assert machine.settle(wanted).changes == []
    machine.reboot()
    result = machine.settle(wanted)
    assert (settings_of(result), result.pending, result.failures) == (["mig_devices"], [], [])


def test_a_card_that_is_reset_for_mig_mode_gets_the_rest_again(machine: Machine) -> None:
    machine.plug(1, architecture="Ampere")
    rest = {"power_limit_w": 300, "gpu_clocks_mhz": [210, 1000]}
    machine.settle(rest)
    result = machine.settle({**rest, "mig_mode": True})
    assert settings_of(result) == ["mig_mode", "power_limit_w", "gpu_clocks_mhz"]
    assert (machine.gpus[0]["limit"], machine.gpus[0]["locked"]) == (300, {"gpu": [210, 1000]})


def test_locked_clocks_are_remembered_until_the_driver_is_loaded_anew(machine: Machine) -> None:
    assert settings_of(machine.settle({"gpu_clocks_mhz": [1600]})) == ["gpu_clocks_mhz"]
    assert machine.settle({"gpu_clocks_mhz": [1600]}).changes == []
    assert machine.settle({"gpu_clocks_mhz": [1600]}, check=True).changes == []
    machine.driver += 1
    assert settings_of(machine.settle({"gpu_clocks_mhz": [1600]})) == ["gpu_clocks_mhz"]
    (machine.root / "clocks.json").write_text("damaged")
    assert settings_of(machine.settle({"gpu_clocks_mhz": []})) == ["gpu_clocks_mhz"]
    assert machine.gpus[0]["locked"] == {}
    assert machine.settle({"gpu_clocks_mhz": []}).changes == []


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
def test_a_card_that_does_not_take_it(machine: Machine, kind: str, option: str, settings: dict[str, Any]) -> None:
    """With exit status 0 or another; the other card is set all the same, and nothing of the first is called done."""
    machine.plug(2)
    machine.edit(0, **{kind: [option]})
    result = machine.settle(settings)
    assert len(result.failures) == 1
    assert "GPU 0 (0000:1b:00.0)" in result.failures[0]
    assert ("not supported" if kind == "deaf" else "Insufficient Permissions") in result.failures[0]
    assert {one.card.gpu.index for one in result.changes} == {1}
    assert {one.card.gpu.index for one in result.pending} <= {1}
    # It is tried again, and not taken for done.
    assert len(machine.settle(settings).failures) == 1


def test_at_boot_one_bad_card_does_not_keep_the_others(machine: Machine) -> None:
    machine.plug(2)
    machine.edit(1, power=[100, 250, 250], limit=250)
    result = machine.settle({"power_limit_w": 400}, {"gpu": "9", "ecc": True}, all_or_nothing=False)
    assert [one["limit"] for one in machine.gpus] == [400, 250]
    assert len(result.failures) == 2
    assert "GPU 9: there is none" in result.failures[0] and "takes 100 to 250 W" in result.failures[1]


def test_no_driver_is_told_by_its_kind(machine: Machine) -> None:
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    machine.put([], broken=words)
    with pytest.raises(NoAnswer, match="driver_not_loaded"):
        machine.settle({"ecc": True})
    machine.program = "/nowhere/nvidia-smi"
    with pytest.raises(NoAnswer, match="not_installed"):
        machine.settle({"ecc": True})
