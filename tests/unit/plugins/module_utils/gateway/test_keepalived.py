# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived on a machine below a temporary root."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import keepalived
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import HEADER


class Machine:
    """systemd and keepalived."""

    def __init__(self) -> None:
        self.installed, self.active, self.refused = True, False, False
        self.calls: list[str] = []

    def run_command(self, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        if argv[0] == "keepalived":
            return int(self.refused), "", f"{argv[-1]}: line 3: unknown"
        if argv[1].startswith("is-"):
            return int(not self.active), "", ""
        if argv[0] == "systemctl":
            self.calls.append(argv[1])
            self.active = self.active or argv[1] == "start"
        return 0, "", ""

    def run(self, text: str, check: bool = False) -> dict[str, Any]:
        module: Any = SimpleNamespace(
            params={"plan": {"floating": f"{HEADER}\n{text}"}, "replace": False},
            check_mode=check,
            run_command=self.run_command,
            get_bin_path=lambda _name, opt_dirs: "keepalived" if self.installed else None,
        )
        self.calls.clear()
        return keepalived.Keepalived(module).run()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.setattr(keepalived, "FLOATING", tmp_path / "keepalived.conf")
    return Machine()


def test_keepalived_starts_once_and_is_reloaded_for_changes(machine: Machine) -> None:
    assert machine.run("a", check=True)["changed"] and not keepalived.FLOATING.exists()
    assert machine.run("a")["changed"] and machine.calls == ["reset-failed", "start", "enable"]
    assert not machine.run("a")["changed"] and machine.calls == []
    assert machine.run("b")["changed"] and machine.calls == ["reset-failed", "reload"]
    assert keepalived.FLOATING.read_text().endswith("b")


def test_a_configuration_that_keepalived_refuses_changes_nothing(machine: Machine) -> None:
    machine.refused = True
    with pytest.raises(ServiceError) as caught:
        machine.run("a")
    assert f"{keepalived.FLOATING}: line 3" in str(caught.value) and not keepalived.FLOATING.exists()


def test_without_keepalived_check_mode_predicts_and_a_run_is_an_error(machine: Machine) -> None:
    machine.installed = False
    assert machine.run("a", check=True)["changed"]
    with pytest.raises(ServiceError, match="not installed: install the package keepalived"):
        machine.run("a")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_of_another_user_is_given_back_to_root(machine: Machine) -> None:
    machine.run("a")
    os.chown(keepalived.FLOATING, 1, 1)
    assert machine.run("a", check=True)["changed"]
    assert machine.run("a")["changed"] and not machine.run("a")["changed"]
