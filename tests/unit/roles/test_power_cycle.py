# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook power_cycle for a node that answers, with a stand-in for the BMC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from .conftest import Stage

PLAYBOOK = Path(__file__).parents[3] / "playbooks/power_cycle.yml"
VALUES = {"confirm": "one", "force": True, "bmc_address": "bmc1", "bmc_user": "root", "bmc_password": "a password"}


@pytest.mark.once
def test_force_accepts_a_node_that_answers_and_check_mode_sends_no_command(staged: Callable[..., Stage]) -> None:
    (play,) = yaml.safe_load(PLAYBOOK.read_text(encoding="utf-8"))
    play = {**play, "vars": {**play["vars"], **VALUES}}
    stage = staged(["bmc_power"])
    seen = [({"module": "bmc_power"}, {"state": "on"})]
    succeeded, output = stage.run([play], "[inference]\none", "--check", seen=seen)
    assert succeeded, output
    assert "would send a cycle to bmc1, and then wait up to 1200 s" in output, output
    assert "now sends" not in output
    assert [call["check_mode"] for call in stage.calls(module="bmc_power", action="cycle")] == [True]
