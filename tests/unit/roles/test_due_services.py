# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles gateway, monitoring and backup change, where they are due, where they are not, and with one tag alone.

The modules are stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

Call = dict[str, Any]

COMPARING = ("gateway", "gateway_certificate", "monitoring_exporters", "monitoring_logs", "monitoring_server", "backup")

MODULES = (*COMPARING, "apt_packages", "gateway_facts", "node_facts")

SOUND: Call = {"due": False, "missing": [], "repository_state": "ready", "down": []}

VARIABLES: Call = {
    "gateway_agent_port": 5004,
    "gateway_serves": "tls",
    "monitoring_exporters": True,
    "monitoring_serves": "{{ inventory_hostname == 'watching' }}",
    "monitoring_targets": {"problems": [], "unreachable": [], "jobs": {}, "rules": {}},
    "monitoring_log_server": "logs.example",
    "backup_repository": "/srv/backup",
    "backup_password": "very-secret",
    "backup_models_path": "/mnt/models",
}

ROLES = ("gateway", "monitoring", "backup")


def role(name: str, entry: str) -> Call:
    """Enter a role as the site does."""
    task = {"ansible.builtin.include_role": {"name": f"baremetal.inference.{name}", "tasks_from": entry}}
    return {**task, "tags": ["always"]} if entry == "main" else task


@pytest.fixture
def stage(staged: Callable[[Sequence[str]], Any]) -> Any:
    return staged(MODULES)


def run(stage: Any, entries: Sequence[str], host: str, *options: str, due: bool) -> set[str]:
    """The modules that change a host, with the parts of `gateway`. `due`: whether the comparisons find a difference."""
    seen = [({"module": module}, {**SOUND, "due": due}) for module in COMPARING]
    play = {"hosts": "all", "vars": VARIABLES, "tasks": [role(name, entry) for entry in entries for name in ROLES]}
    succeeded, output = stage.run([play], host, *options, seen=seen)
    assert succeeded, output
    calls = stage.calls(check_mode=False)
    return {call["module"] + "".join(f" {part}" for part in call.get("parts", ())) for call in calls}


def test_roles_that_are_due_change_all_parts_and_compare_only_once(stage: Any) -> None:
    changed = run(stage, ["preflight", "main"], "a", due=True)
    assert changed == {
        *("gateway haproxy", "gateway floating", "gateway_certificate", "gateway_facts", "apt_packages"),
        *("monitoring_exporters", "monitoring_logs", "backup"),
    }
    assert {module: len(stage.calls(module=module, check_mode=True)) for module in COMPARING} == {
        **dict.fromkeys(COMPARING, 1),
        "monitoring_server": 0,
    }


def test_roles_that_run_although_nothing_is_due_compare_again_and_change_nothing(stage: Any) -> None:
    """The exceptions are parts that depend on the engines of other machines."""
    assert run(stage, ["preflight", "main"], "a", due=False) == {"gateway haproxy", "gateway_facts"}
    assert len(stage.calls(module="backup", check_mode=True)) == 2
    assert run(stage, ["main"], "a", due=False) == {"gateway haproxy", "gateway_facts"}


@pytest.mark.parametrize(
    ("tag", "changed"),
    [
        ("gateway_install", {"apt_packages", "gateway_certificate"}),
        # The newest ansible-core runs only one tag of each role.
        pytest.param("gateway_certificate", {"gateway_certificate"}, marks=pytest.mark.once),
        pytest.param("gateway_floating", {"gateway floating"}, marks=pytest.mark.once),
        pytest.param("gateway_configure", {"gateway haproxy"}, marks=pytest.mark.once),
        ("monitoring_exporters", {"monitoring_exporters"}),
        pytest.param("monitoring_logs", {"monitoring_logs"}, marks=pytest.mark.once),
        ("backup_configure", {"backup"}),
    ],
)
def test_a_tag_alone_changes_its_part(stage: Any, tag: str, changed: set[str]) -> None:
    assert run(stage, ["main"], "a", "--tags", tag, due=True) == changed


def test_each_run_configures_prometheus_on_a_monitoring_host(stage: Any) -> None:
    assert "monitoring_server" in run(stage, ["main"], "watching", due=False)
