# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that cannot be reached stops no other host. The run ends with an error that names the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]


@pytest.fixture
def stage(staged: Callable[..., Any]) -> Any:
    return staged(["node_recovery"])


def plays(fail: str = "nobody") -> list[dict[str, Any]]:
    """The first and the last tasks of a run, and work between them, which fails on the host `fail`."""
    work = {"ansible.builtin.command": "false", "when": f"inventory_hostname == '{fail}'"}
    say = {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} works without {{ update_left_out }}"}}
    common = {"hosts": "inference", "roles": ["site_variables"]}
    return [
        {**common, "tasks": [{"ansible.builtin.import_tasks": "tasks/reach.yml"}]},
        # With any_errors_fatal, a machine that was left out must not stop the others either.
        {**common, "any_errors_fatal": fail == "nobody", "tasks": [work, say]},
        {**common, "tasks": [{"ansible.builtin.import_tasks": "tasks/left_out.yml"}]},
    ]


def test_an_unreachable_machine_is_reported_at_the_end(stage: Any) -> None:
    succeeded, output = stage.run(plays(), f"[inference]\na\ngone {stage.gone}\nb")
    assert not succeeded, output
    assert "a works without ['gone']" in output and "b works without ['gone']" in output
    said = "The run went on without gone. gone could not be reached. Remove the cause, then run this"
    assert f"{said} playbook again with -l gone." in output
    # One host fails with the report. The others do not look as if they had failed.
    assert output.count("failed=1") == 1 and output.count("unreachable=1") == 1
    # The last host reports: if an earlier host failed, the next host would take its place, and fail as well.
    assert "fatal: [b]: FAILED!" in output


@pytest.mark.full
def test_a_failed_machine_is_reported_together_with_an_unreachable_machine(stage: Any) -> None:
    succeeded, output = stage.run(plays("b"), f"[inference]\na\ngone {stage.gone}\nb")
    assert not succeeded and "The run went on without gone, b." in output, output
    assert "gone could not be reached. b failed, or stopped answering: the output above names the cause." in output


@pytest.mark.full
def test_a_run_that_reaches_all_machines_reports_no_machine(stage: Any) -> None:
    succeeded, output = stage.run(plays(), "[inference]\na\nb")
    assert succeeded and "went on without" not in output and "a works without []" in output, output


@pytest.mark.full
def test_recovery_goes_on_without_an_unreachable_machine(stage: Any) -> None:
    found = yaml.safe_load((ROOT / "playbooks/recovery.yml").read_text(encoding="utf-8"))
    plays = [{**play, "become": False} for play in found]
    due = ({"module": "node_recovery"}, {"due": True})
    succeeded, output = stage.run(plays, f"[inference]\na\ngone {stage.gone}\nb", seen=[due])
    assert not succeeded and "The run went on without gone." in output, output
    installed = [call["on"] for call in stage.calls(module="node_recovery", check_mode=False)]
    assert sorted(installed) == ["a", "b"]


@pytest.mark.once
def test_an_action_of_recovery_reads_no_setting(stage: Any) -> None:
    """A mistake in the inventory must not stop a reset at night. The run fails later: this machine has no inferctl."""
    found = yaml.safe_load((ROOT / "playbooks/recovery.yml").read_text(encoding="utf-8"))
    plays = [{**play, "become": False} for play in found]
    mistake = {"module": "node_recovery"}
    for extra, reads in (('{"action": "status"}', False), ("{}", True)):
        _done, output = stage.run(plays, "[inference]\na", "--extra-vars", extra, failures=[mistake])
        assert ("node_recovery was told to fail" in output) == reads, output
        assert "unreachable=0" in output and ("Find the instances of the node" in output) != reads, output


@pytest.mark.once
@pytest.mark.parametrize("name", ["update_model", "maintenance", "recovery", "backup"])
def test_playbooks_begin_with_the_check_of_connections_and_end_with_its_report(name: str) -> None:
    found = yaml.safe_load((ROOT / f"playbooks/{name}.yml").read_text(encoding="utf-8"))
    first, last = found[0], found[-1]
    assert first["tasks"][0]["ansible.builtin.import_tasks"] == "tasks/reach.yml" and "any_errors_fatal" not in first
    assert last["tasks"][-1]["ansible.builtin.import_tasks"] == "tasks/left_out.yml"
    assert first["hosts"] == last["hosts"]
