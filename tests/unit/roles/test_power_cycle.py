# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook power_cycle reports in check mode, with a stand-in for the BMC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from .conftest import Stage

PLAYBOOK = Path(__file__).parents[3] / "playbooks/power_cycle.yml"
VALUES = {"confirm": "one", "force": True, "bmc_address": "bmc1", "bmc_user": "root", "bmc_password": "a password"}


@pytest.mark.once
def test_check_mode_does_not_report_that_the_bmc_gets_a_command(staged: Callable[..., Stage]) -> None:
    """This machine answers, hence `force`."""
    (play,) = yaml.safe_load(PLAYBOOK.read_text(encoding="utf-8"))
    play = {**play, "vars": {**play["vars"], **VALUES}}
    stage = staged(["bmc_power"])
    seen = [({"module": "bmc_power"}, {"state": "on"})]
    succeeded, output = stage.run([play], "[inference]\none", "--check", seen=seen)
    assert succeeded, output
    assert "would send a cycle to bmc1, and then wait up to 1200 s" in output, output
    assert "now sends" not in output
    assert all(call["check_mode"] for call in stage.calls(module="bmc_power", action="cycle"))
