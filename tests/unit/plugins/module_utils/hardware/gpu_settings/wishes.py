# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said against settings of a made-up machine, and what they change."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError

Machine = Any


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
