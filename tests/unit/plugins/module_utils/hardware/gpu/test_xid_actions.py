# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action for an XID."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.xid_actions import (
    APPLICATION,
    NONE,
    REBOOT,
    REPLACE,
    RESET,
    WATCH,
)


@pytest.mark.parametrize(
    ("number", "action"),
    [
        (13, APPLICATION),
        (31, APPLICATION),
        (43, NONE),
        (48, RESET),
        (54, REPLACE),
        (63, NONE),
        (74, WATCH),
        (79, REBOOT),
        (94, APPLICATION),
        (95, RESET),
        (119, RESET),
        (151, REBOOT),
        (171, WATCH),
    ],
)
def test_an_xid_has_the_action_of_the_table(number: int, action: str) -> None:
    found = xid_actions.meaning(number)
    assert found.action == action and found.words


def test_an_xid_that_is_not_in_the_table_is_watched() -> None:
    assert xid_actions.meaning(9999).action == WATCH


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", RESET),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", NONE),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", REBOOT),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", WATCH),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", RESET),
        ("in words of a later driver", WATCH),
    ],
)
def test_xid_154_has_the_recovery_action_in_its_text(words: str, action: str) -> None:
    assert xid_actions.meaning(154, words).action == action


@pytest.mark.parametrize(("words", "action"), [("None", NONE), ("N/A", NONE), ("Reset", RESET), ("Reboot", REBOOT)])
def test_the_words_of_nvidia_smi_for_an_action_are_understood(words: str, action: str) -> None:
    assert xid_actions.wanted(words) == action


def test_the_worst_action_counts() -> None:
    assert xid_actions.worst([WATCH, REBOOT, RESET, NONE]) == REBOOT
    assert xid_actions.worst([REBOOT, REPLACE]) == REPLACE
    assert xid_actions.worst([]) == NONE


def test_every_action_of_the_table_is_in_the_order() -> None:
    assert {action for action, _words in xid_actions.MEANINGS.values()} <= set(xid_actions.ORDER)
