# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of sminfo about the subnet manager, recorded from a subnet that ibsim simulated."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import NOT_INSTALLED, Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import subnet_manager

MASTER = "sminfo: sm lid 1 sm guid 0x100001, activity count 52 priority 0 state 3 SMINFO_MASTER\n"
ENDED = "/usr/sbin/sminfo: iberror: failed: query\n"
NO_UMAD = "/usr/sbin/sminfo: iberror: failed: Failed to open 'mlx5_0' port '1'\n"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(0, stdout=MASTER), True),
        (Outcome(255, stdout=ENDED, stderr="ibwarn: [1509] mad_rpc: _do_madrpc failed; dport (Lid 1)\n"), False),
        (Outcome(255, stdout=NO_UMAD), None),
        (Outcome(0, stdout=MASTER.replace("MASTER", "STANDBY")), None),
        (Outcome(None, failure=NOT_INSTALLED), None),
    ],
)
def test_the_subnet_manager_answers_only_as_master(outcome: Outcome, expected: bool | None) -> None:
    asked = []

    def run(command: Sequence[str]) -> Outcome:
        asked.append(list(command))
        return outcome

    assert subnet_manager.answers("mlx5_1", 2, run) is expected
    assert asked == [["sminfo", "-C", "mlx5_1", "-P", "2"]]
