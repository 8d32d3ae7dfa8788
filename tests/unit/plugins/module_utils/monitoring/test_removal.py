# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services and files that a removal takes from a monitoring host."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import logs, removal


def test_files_of_earlier_runs_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(removal, "STATE", tmp_path / "monitoring.json")
    monkeypatch.setattr(removal, "DIRECTORY", tmp_path)
    (part,) = removal.everything()
    removal.STATE.write_text('{"schema": 1, "files": ["prometheus.yml", "rules/old.yml"]}')
    (later,) = removal.everything()
    assert set(later.others) - set(part.others) == {tmp_path / "rules/old.yml"}
    assert list(later.services) == [removal.PROMETHEUS, removal.ALERTMANAGER]


def test_the_removed_files_of_log_shipping_are_those_that_the_role_writes() -> None:
    assert {path.name for path in removal.shipping()} == {logs.CONFIG.name, *logs.units(), logs.STATE}
