# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a test calls a module as Ansible does."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import _internal
from ansible.module_utils.testing import patch_module_args

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunModule:
    """Runs a module with these arguments in this process, and hands back what it answers."""
    # Where a test of a filter was imported before, warnings would go to the controller's screen.
    monkeypatch.setattr(_internal, "is_controller", False, raising=False)

    def run(module: ModuleType, check: bool = False, **arguments: Any) -> dict[str, Any]:
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run
