# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates under load: no client notices, a bad release goes back, and the next run finishes a killed update."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible.release import __version__
from fleet import Fleet, instances, unharmed
from node import PROJECT, Node, changes, wait_for


def test_the_controller_has_the_version_of_ansible_that_the_scenario_names() -> None:
    wanted = (PROJECT / "molecule/rolling/controller").read_text().strip()
    assert __version__.startswith(f"{wanted}.")


def test_a_site_run_leaves_the_release_pending_and_check_mode_shows_the_plan(fleet: Fleet) -> None:
    pids = [node.engine_pid() for node in fleet.nodes]
    output = fleet.update("--check", instances=instances("tiny-b"))
    assert "batch 1: main on deb12 from release 1 to 2" in output
    assert "batch 2: main on deb13 from release 1 to 2" in output
    output = fleet.nodes[0].site("--limit", fleet.limit, instances=instances("tiny-b"))
    assert output.count("is staged and pending") == 2
    assert [node.engine_pid() for node in fleet.nodes] == pids
    assert fleet.answers() == ["I am tiny-a."] * 2
    # The nodes still serve the old release.
    assert fleet.names() == ["main", "tiny-a"] and fleet.answer_to("tiny-a") == "I am tiny-a."


def test_an_update_of_both_nodes_to_another_model_fails_no_request(fleet: Fleet) -> None:
    fleet.wait_up()
    said: list[str] = []
    load = fleet.load()
    report = load.during(lambda: said.append(fleet.update(instances=instances("tiny-b"))), seconds_after=3)
    unharmed(report)
    # The other node answers meanwhile: the report has the number of requests.
    meanwhile = [int(number) for number in re.findall(r"(\d+) requests for main came meanwhile", said[0])]
    assert len(meanwhile) == 2 and 0 < sum(meanwhile) <= report.succeeded, said[0]
    # A drained engine is killed, without the orderly end of its Python.
    stops = [node.run("journalctl --unit vllm@main --grep 'stopping; ' --output cat") for node in fleet.nodes]
    assert any("it is drained and has no requests" in one for one in stops), stops
    assert set(report.texts) == {"I am tiny-a", "I am tiny-b"}
    assert fleet.serving() == {node.name: ["tiny-b", "active", "current", "desired"] for node in fleet.nodes}
    assert fleet.answers() == ["I am tiny-b."] * 2
    assert fleet.names() == ["main", "tiny-b"]
    assert fleet.answer_to("tiny-b") == "I am tiny-b." and fleet.answer_to("tiny-a") == ""


def test_a_second_update_changes_nothing(fleet: Fleet) -> None:
    output = fleet.update(instances=instances("tiny-b"))
    assert changes(output) == 0, output
    assert "not due: main on deb12" in output


def test_a_release_that_cannot_fit_is_refused_before_any_change(fleet: Fleet) -> None:
    """More memory than any machine has, and a model with which the engine dies: the plan finds both."""
    before = fleet.releases(), [node.engine_pid() for node in fleet.nodes]
    asked: list[tuple[dict[str, Any], str]] = [
        ({"vllm_environment": {"VLLM_CPU_KVCACHE_SPACE": "100000"}}, "would fit: VLLM_CPU_KVCACHE_SPACE: 1"),
        ({"set": {"main": "tiny-broken"}}, "PROBLEM head_size: 16"),
    ]
    for variables, words in asked:
        output = fleet.update(check=False, instances=instances("tiny-b"), **variables)
        said = " ".join(output.replace("\\n", " ").split())
        for node in fleet.nodes:
            assert f"{node.name}: engines that this run would start here do not fit" in said, output[-3000:]
        assert words in said and "-e vllm_check_fit=false" in said
        assert changes(output) == 0
    assert (fleet.releases(), [node.engine_pid() for node in fleet.nodes]) == before
    assert "tiny-broken" not in fleet.nodes[1].run("ls /mnt/models")


def test_a_model_that_cannot_serve_goes_back_and_stops_the_update(fleet: Fleet) -> None:
    """The check of the fit is off: the plan does not find every fault."""
    fleet.wait_up()
    untouched, loaded = fleet.nodes[1].engine_pid(), newest_process(fleet.gateway)
    said: list[str] = []
    load = fleet.load()
    broken = instances("tiny-broken")
    report = load.during(lambda: said.append(fleet.update(check=False, instances=broken, vllm_check_fit=False)))
    unharmed(report)
    (output,) = said
    assert "baremetal.inference.update_model stopped: it failed on deb12." in output
    assert "went back to the release that served before" in output
    assert fleet.nodes[1].engine_pid() == untouched
    assert fleet.models() == ["tiny-b"] * 2
    assert fleet.answers() == ["I am tiny-b."] * 2
    assert not any("update" in drains for drains in fleet.drains())
    # No name has changed, so the gateway did not reload.
    assert fleet.names() == ["main", "tiny-b"] and newest_process(fleet.gateway) == loaded


@pytest.mark.full
def test_the_next_run_continues_the_update_of_a_killed_controller(fleet: Fleet) -> None:
    fleet.wait_up()
    canary = fleet.nodes[0]
    before = canary.engine_pid()

    def killed_and_run_again() -> None:
        update = fleet.start_update(instances=instances("tiny-a"))
        wait_for("the canary runs another engine", lambda: _runs_another(canary, before))
        update.kill()
        assert "update" in fleet.drains()[0]
        lock = fleet.releases()[canary.name]["lock"]
        assert f"is locked by run {lock['run_id']}" in " ".join(canary.site(check=False).split())
        # The run was on this controller, so the playbook sees that the process of the run has ended.
        assert f"run {lock['run_id']} was cut off here; this run continues its work" in fleet.update(
            instances=instances("tiny-a")
        )

    unharmed(fleet.load().during(killed_and_run_again))
    assert fleet.models() == ["tiny-a"] * 2
    assert fleet.answers() == ["I am tiny-a."] * 2
    assert not any("update" in drains for drains in fleet.drains())
    assert all(instance["lock"] is None and instance["swap"] is None for instance in fleet.releases().values())


def newest_process(gateway: Node) -> str:
    """The number of the newest HAProxy process, which changes at a reload."""
    return gateway.run("pgrep --newest --exact haproxy")


def _runs_another(node: Node, pid: int) -> bool:
    found = node.run("docker inspect --format '{{.State.Pid}}' vllm-main", check=False)
    return found.isdigit() and int(found) not in (0, pid)
