# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals of settings on a made-up machine, and the settings that a result changes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError

Machine = Any


def settings_of(result: Any) -> list[str]:
    return [change.setting for change in result.changes]


def refusals(machine: Machine, settings: dict[str, Any], *overrides: dict[str, Any]) -> str:
    """The refusal of settings, in check mode and in a run. Nothing may change."""
    before = machine.gpus
    for check in (True, False):
        with pytest.raises(InputError) as error:
            machine.settle(settings, *overrides, check=check)
    assert machine.gpus == before and machine.calls() == []
    return str(error.value)
