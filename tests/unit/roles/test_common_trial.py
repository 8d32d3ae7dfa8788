# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role common reports of a change of admins or SSH that the node has undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Stage

VARIABLES = {
    "common_admins": [],
    "__common_access_seconds": 60,
    "__common_trial": "admins",
    "__common_trial_hint": "Correct the entry.",
}


@pytest.mark.once
def test_a_trial_that_ended_before_its_confirmation_is_not_blamed_on_the_connection(
    staged: Callable[..., Stage],
) -> None:
    """A new connection of the kind `local` always succeeds, so only the confirmation fails."""
    included = {"name": "baremetal.inference.common", "tasks_from": "access/confirm"}
    play = {
        "name": "Confirm",
        "hosts": "all",
        "vars": VARIABLES,
        "tasks": [{"name": "Confirm", "ansible.builtin.include_role": included}],
    }
    stage = staged(["admin_accounts"])
    succeeded, output = stage.run([play], "one", failures=[{"module": "admin_accounts", "phase": "confirm"}])
    assert not succeeded
    assert "could not be confirmed: admin_accounts was told to fail" in output, output
    assert "no new SSH connection" not in output, output
    assert [call["phase"] for call in stage.calls(module="admin_accounts")] == ["confirm", "rollback"]
