# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What XIDs and the driver's own words ask for."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions


@pytest.mark.parametrize(
    ("words", "action"),
    [("Reset", "reset"), ("Reboot", "reboot"), ("Drain P2P", "watch"), ("Drain and Reset", "reset"), ("None", "none"),
     ("N/A", "none"), ("Pray", "watch")],
)  # fmt: skip
def test_what_a_gpu_asks_for_in_its_own_words(words: str, action: str) -> None:
    assert xid_actions.wanted(words) == action


@pytest.mark.parametrize(
    ("number", "text", "action"),
    [
        (79, "", xid_actions.REBOOT),
        (95, "", xid_actions.RESET),
        (31, "", xid_actions.APPLICATION),
        (999, "", xid_actions.WATCH),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", xid_actions.RESET),
        (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", xid_actions.REBOOT),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", xid_actions.NONE),
    ],
)
def test_the_table_of_xids(number: int, text: str, action: str) -> None:
    assert xid_actions.meaning(number, text).action == action


CATALOGUE = {
    "RESTART_APP": "8 11 13 25 31 32 39 40 41 60 68 69 70 71 72 75 76 77 80 82 83 84 85 86 88 89 94 96 97 98 99 100 101"
    " 102 103 104 105 126 127 128 129 130 131 132 133 134 135 139",
    "RESET_GPU": "46 62 64 95 109 110 119 120 136 140 143 155 156 158",
    "RESTART_BM RESTART_VM": "79 151",
    "CHECK_MECHANICALS": "54",
    "IGNORE": "37 38 43 44 63 66 67 92 93 106 107 121 137 141 152 153 157 160 161",
    "WORKFLOW": "45 48 74 144 145 146 147 148 149 150 159",
    "CONTACT_SUPPORT": "1 2 12 33 47 56 57 58 59 61 65 73 81 87 90 91 111 118 122 138 142",
}


"""Immediate actions of NVIDIA's catalogue as of 2025-10-29."""


@pytest.mark.parametrize(
    ("immediate", "actions"),
    [
        ("RESTART_APP", {xid_actions.APPLICATION}),
        ("RESET_GPU", {xid_actions.RESET}),
        ("RESTART_BM RESTART_VM", {xid_actions.REBOOT}),
        ("CHECK_MECHANICALS", {xid_actions.REPLACE}),
        # Never an act.
        ("IGNORE", {xid_actions.NONE, xid_actions.APPLICATION, xid_actions.WATCH}),
        ("WORKFLOW", {xid_actions.NONE, xid_actions.WATCH, xid_actions.RESET}),
        ("CONTACT_SUPPORT", {xid_actions.WATCH}),
    ],
)
def test_the_table_says_what_the_catalogue_says(immediate: str, actions: set[str]) -> None:
    numbers = [int(number) for number in CATALOGUE[immediate].split()]
    assert {number: found for number in numbers if (found := xid_actions.meaning(number).action) not in actions} == {}


def test_every_action_of_the_table_is_known() -> None:
    assert {action for action, _words in xid_actions.MEANINGS.values()} <= set(xid_actions.ORDER)
