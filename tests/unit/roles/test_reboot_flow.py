# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboots of the playbook site: which nodes, in which order, and what the run reports of the others.

No test reboots: a stand-in takes the place of ansible.builtin.reboot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from .conftest import ROOT, Stage
from .test_due_hardware import DECLARED, WELL

PATH = "roles/maintenance/tasks/reboot_node.yml"
REAL = "ansible.builtin.reboot:"

WAITS: dict[str, Any] = {"reboot_reasons": ["inference-kernel-cmdline"], "driver": True, "in_use": []}
"""What node_facts returns for an unused node that waits for a reboot."""

Call = dict[str, Any]

REBOOT = {"name": "Reboot", "ansible.builtin.include_tasks": "tasks/reboot.yml"}
KERNEL_CHECK = {"module": "nvidia_driver_facts", "gather_subset": ["kernel_check"]}


@pytest.fixture
def stage(staged: Callable[..., Stage]) -> Stage:
    text = (ROOT / PATH).read_text(encoding="utf-8")
    assert text.count(REAL) == 1
    texts = {PATH: text.replace(REAL, "baremetal.inference.machine_reboot:")}
    return staged([*WELL, "node_facts", "machine_reboot", "system_settings"], texts)


def reboot(stage: Stage, wants: Call, failures: Sequence[Call] = (), missing: Sequence[str] = ()) -> tuple[bool, str]:
    """Whether the tasks of the reboot succeeded, and what was printed, with the facts that the run continues with.

    `missing`: the parameters that the kernel lacks after the reboot.
    """
    facts = "{{ [common_reboot_required, common_reboot_reasons, site_due] | to_json }}"
    wait = {"common_reboot_required": True, "common_reboot_reasons": ["the driver"]}
    tasks = [
        {"name": "Wait", "ansible.builtin.set_fact": wait},
        {"name": "Go", "block": [REBOOT], "always": [{"name": "Report", "ansible.builtin.debug": {"msg": facts}}]},
    ]
    seen = [({"module": module}, answer) for module, answer in WELL.items()]
    seen += [({"module": "node_facts"}, wants), ({"module": "system_settings"}, {"missing": list(missing)})]
    same = {f"{role}_due": False for role in ("common", "docker", "model_store", "vllm", "recovery")}
    cmdline = {"common_kernel_cmdline": ["iommu=pt", "quiet"]}
    variables = json.dumps({**DECLARED, **same, **cmdline, "ansible_become": False})
    play = {"name": "Reboot", "hosts": "all", "roles": ["site_variables"], "tasks": tasks}
    return stage.run([play], "[inference]\none", "--extra-vars", variables, failures=failures, seen=seen)


def test_after_the_reboot_the_driver_is_compared_again_and_the_later_roles_are_due(stage: Stage) -> None:
    done, said = reboot(stage, WAITS)
    assert done, said
    assert "one reboots. The run waits for the node, for at most 1800 s" in said
    modules = [call["module"] for call in stage.calls()]
    # Before the reboot, the run checks that every kernel that may boot has the driver.
    assert modules[:3] == ["node_facts", "nvidia_driver_facts", "machine_reboot"]
    assert KERNEL_CHECK.items() <= stage.calls()[1].items()
    assert "nvidia_driver_facts" in modules[3:] and modules.count("machine_reboot") == 1
    due = ["nvidia_driver", "docker", "model_store", "vllm", "recovery"]
    assert json.dumps([False, [], due]) in said.replace("\\", "")


@pytest.mark.parametrize(
    ("wants", "failures", "words", "waits"),
    [
        (
            {"in_use": ["the instance main runs"]},
            [],
            "one was not rebooted, because it is in use: the instance main",
            True,
        ),
        ({}, [KERNEL_CHECK], "told to fail", False),
    ],
    ids=["an engine has started since", "a kernel has no driver"],
)
def test_a_node_that_must_not_reboot_is_reported_with_the_reason(
    stage: Stage, wants: Call, failures: Sequence[Call], words: str, waits: bool
) -> None:
    """The end of the run does not advise a reboot that has just failed."""
    done, said = reboot(stage, {**WAITS, **wants}, failures)
    assert not done and words in said, said
    assert stage.calls(module="machine_reboot") == []
    assert f"[{json.dumps(waits)}, {json.dumps(['the driver'] if waits else [])}" in said.replace("\\", "")


def test_a_node_that_does_not_come_back_is_reported_with_the_next_step(stage: Stage) -> None:
    done, said = reboot(stage, WAITS, [{"module": "machine_reboot"}])
    # Another reboot would not help, so the end of the run does not advise it.
    assert not done and "[false, []" in said, said
    assert not done and "one: Reboot | Reboot, and wait: machine_reboot was told to fail. If the node was" in said, said
    assert (
        "did not answer within 1800 s (maintenance_reboot_seconds), look at the machine's console or the BMC's" in said
    )


def test_a_boot_without_the_declared_command_line_is_an_error(stage: Stage) -> None:
    done, said = reboot(stage, WAITS, missing=["iommu=pt", "quiet"])
    assert not done and "one was rebooted, and its kernel still runs without iommu=pt quiet (common_kernel_cmd" in said
    (call,) = stage.calls(module="system_settings")
    assert call["check_mode"] and call["cmdline"] == ["iommu=pt", "quiet"]
    # Another reboot would not help, so the end of the run does not advise it.
    assert "[false, []" in said and stage.calls(module="machine_reboot")


def test_a_node_without_a_reason_is_not_rebooted(stage: Stage) -> None:
    done, said = reboot(stage, {**WAITS, "reboot_reasons": []})
    assert done and stage.calls(module="machine_reboot") == [], said


FOUND: dict[str, tuple[Call | None, bool]] = {
    # By node: what the checks of the run have found, and whether the node may be rebooted.
    "free": ({"in_use": [], "left": []}, True),
    "used": ({"in_use": ["the instance main runs"], "left": []}, False),
    "gatewayed": ({"in_use": [], "left": ["gateway"]}, False),
    "watched": ({"in_use": [], "left": ["monitoring"]}, True),
    "unknown": ({"left": []}, False),
    "unchecked": (None, False),
}


@pytest.mark.parametrize(
    ("allowed", "options"),
    [
        ({"reboot_allowed": "true"}, ()),
        pytest.param({}, (), marks=pytest.mark.once),
        pytest.param({"reboot_allowed": "false"}, (), marks=pytest.mark.once),
        ({"reboot_allowed": "true"}, ("--check",)),
    ],
    ids=["allowed", "not set", "not allowed", "check"],
)
def test_only_a_node_that_is_not_in_use_may_be_rebooted(stage: Stage, allowed: Call, options: tuple[str, ...]) -> None:
    extra = ("--extra-vars", json.dumps({**allowed, "ansible_become": False}))
    said = {"name": "Say", "ansible.builtin.debug": {"msg": "{{ inventory_hostname }} may={{ site_may_reboot }}"}}
    entered = {"msg": "{{ inventory_hostname }} entered"}
    enter = {"name": "Enter", "ansible.builtin.debug": entered, "when": "site_may_reboot"}
    *_flags, report = yaml.safe_load((ROOT / "roles/common/tasks/reboot.yml").read_text(encoding="utf-8"))
    due = {**report, "vars": {"common_reboot_reason": "the driver"}}
    play = {"name": "See", "hosts": "all", "roles": ["site_variables"], "tasks": [said, enter, due]}
    nodes = [f"{name} site_left='{json.dumps(left)}'" if left else name for name, (left, _may) in FOUND.items()]
    hosts = "\n".join(["[inference]", *nodes, "[gateway]", "gw"])
    done, output = stage.run([play], hosts, *options, *extra)
    assert done, output
    in_this_run = allowed == {"reboot_allowed": "true"} and not options
    for name, (_left, may) in FOUND.items():
        expected = may and in_this_run
        assert f"{name} may={expected}" in output and (f"{name} entered" in output) == expected, (name, output)
        ends = "This run reboots the host" if expected else "Nothing reboots by itself."
        assert f"{name}: a reboot is due: the driver. {ends}" in output, (name, output)
    # The playbook reboots no gateway.
    assert "gw: a reboot is due: the driver. Nothing reboots by itself." in output


def test_the_controller_itself_is_never_rebooted(stage: Stage) -> None:
    """The facts of the role common identify the controller. Both hosts are the controller; only `one` has facts."""
    tasks = yaml.safe_load((ROOT / "roles/common/tasks/preflight.yml").read_text(encoding="utf-8"))
    facts = next(task["ansible.builtin.setup"] for task in tasks if "ansible.builtin.setup" in task)
    setup = {"name": "Read", "ansible.builtin.setup": facts, "when": "inventory_hostname == 'one'"}
    said = {"name": "Say", "ansible.builtin.debug": {"msg": "{{ inventory_hostname }} may={{ site_may_reboot }}"}}
    play = {"name": "See", "hosts": "all", "roles": ["site_variables"], "tasks": [setup, said]}
    extra = {"reboot_allowed": "true", "site_left": {"in_use": [], "left": []}, "ansible_become": False}
    done, output = stage.run([play], "[inference]\none\ntwo", "--extra-vars", json.dumps(extra))
    assert done and "one may=False" in output and "two may=True" in output, output


@pytest.mark.once
@pytest.mark.parametrize(("extra", "subsets"), [({}, ["left"]), ({"reboot_allowed": "true"}, ["left", "in_use"])])
def test_the_use_of_a_node_is_read_only_where_a_reboot_is_allowed(
    stage: Stage, extra: Call, subsets: list[str]
) -> None:
    plays = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (task,) = [
        task
        for play in plays
        for task in play.get("tasks", [])
        if task["name"] == "Read what earlier runs have left on the machine"
    ]
    variables = json.dumps({**extra, "ansible_become": False})
    play = {"name": "Read", "hosts": "all", "tasks": [task]}
    done, said = stage.run([play], "[inference]\none", "--extra-vars", variables)
    assert done, said
    (call,) = stage.calls(module="node_facts")
    assert call["gather_subset"] == subsets


WAIT = {
    "name": "Wait",
    "ansible.builtin.set_fact": {
        "common_reboot_required": True,
        "common_reboot_reasons": ["the driver of {{ inventory_hostname }}"],
    },
    "when": "inventory_hostname != 'done'",
}


def test_one_report_names_all_hosts_that_wait_also_a_node_that_failed(stage: Stage) -> None:
    tasks = [
        WAIT,
        {"name": "Break", "ansible.builtin.fail": {"msg": "broken"}, "when": "inventory_hostname == 'one'"},
        {
            "name": "Report",
            "ansible.builtin.include_role": {"name": "baremetal.inference.common", "tasks_from": "reboot_due"},
            "when": "common_reboot_required | default(false)",
        },
    ]
    inventory = "[inference]\ndone\none\ntwo\nthree\n[gateway]\ngw1\nthree\n[monitoring]\nmon1"
    play = {"name": "End", "hosts": "all", "become": False, "roles": ["site_variables"], "tasks": tasks}
    _done, said = stage.run([play], inventory)
    assert said.count("These hosts wait for a reboot:") == 1, said
    assert "No playbook reboots gw1, mon1: run systemctl reboot there" in said
    for host in ("one", "two", "three", "gw1", "mon1"):
        assert f"{host}: the driver of {host}" in said
    assert "baremetal.inference.site -e reboot_allowed=true" in said
    assert "baremetal.inference.maintenance -l one,two,three -e reboot_allowed=true" in said


@pytest.mark.once
def test_the_report_ends_the_run_but_comes_before_the_engines_if_the_driver_waits(stage: Stage) -> None:
    nodes = {
        # By host: its facts, and the place of the report.
        "nothing": ("", ""),
        "cmdline": ("common_reboot_required=True", "last"),
        "driver": ("common_reboot_required=True nvidia_driver_reboot_required=True", "before the engines"),
    }
    variables = {"site_left": {"left": []}, "vllm_due": True, "ansible_become": False}
    lists = "{{ [inventory_hostname, site_while_loading, site_last] | to_json }}"
    said = {"name": "Say", "ansible.builtin.debug": {"msg": f"{lists}."}}
    play = {"name": "See", "hosts": "all", "roles": ["site_variables"], "tasks": [said]}
    # Two hosts are gateways alone.
    hosts = ["[inference]", *nodes, "[gateway]", *(f"{name} {facts}" for name, (facts, _place) in nodes.items())]
    hosts += ["waiting common_reboot_required=True", "quiet common_reboot_required=False"]
    done, output = stage.run([play], "\n".join(hosts), "--extra-vars", json.dumps(variables))
    assert done, output
    report = '["common", "reboot_due"]'
    placed = dict(re.findall(r'"\["(\w+)", (.*?)\]\."', output.replace("\\", "")))
    assert set(placed) == {*nodes, "waiting", "quiet"}, output
    for name, (_facts, place) in nodes.items():
        assert placed[name].count(report) == bool(place), placed[name]
        assert (f'{report}, ["vllm", "ready"]]' in placed[name]) == (place == "before the engines")
        assert placed[name].endswith(f'["gateway", "verify"], {report}]') == (place == "last")
    assert report in placed["waiting"] and report not in placed["quiet"], placed
