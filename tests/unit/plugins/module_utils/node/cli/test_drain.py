# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl drain`, `undrain`, `drains`: text, JSON, exit codes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, gangs

from .conftest import Run, RunJson


def test_the_commands_drain_undrain_and_drains_print_json(run_json: RunJson, paths: Paths) -> None:
    began = datetime.now(UTC)
    code, document = run_json("drain", "main", "--reason", "new  disk", "--for", "30m")
    assert (code, document["changed"]) == (0, True)
    (item,) = document["instances"]
    assert (item["instance"], item["changed"]) == ("main", True)
    drain = item["drain"]
    assert (drain["owner"], drain["reason"]) == ("alice@node1", "new disk")
    seconds = (drains.parse_time(drain["until"]) - began).total_seconds()
    assert 1798 <= seconds <= 1810

    again = ["drain", "main", "--reason", "new disk", "--until", drain["until"]]
    assert run_json(*again)[1]["changed"] is False
    assert run_json("drains")[1]["drains"] == [{"instance": "main", **drain}]

    assert run_json("undrain", "main", "--owner", "update")[1]["instances"][0]["drain"] == drain
    assert run_json("undrain", "main", "side")[1] == {
        "schema": 1,
        "changed": True,
        "instances": [
            {"instance": "main", "changed": True, "drain": None},
            {"instance": "side", "changed": False, "drain": None},
        ],
    }
    assert run_json("undrain", "main")[1]["changed"] is False
    assert not paths.drain("main").exists()


def test_the_commands_drain_undrain_and_drains_print_text(run: Run) -> None:
    assert run("drains")[1] == "nothing is drained\n"
    code, output, errors = run("drain", "main", "--reason", "new disk")
    assert (code, output) == (0, "main: drained by alice@node1 until undrained: new disk\n")
    assert errors == output, "the line for the journal goes to stderr, since the test has no journal"
    assert run("drain", "main", "--reason", "new disk")[1:] == (output.replace("\n", " (unchanged)\n"), "")
    assert run("drains")[1] == output
    assert run("undrain", "main")[1] == "main: not drained\n"
    assert run("undrain", "main")[1:] == ("main: not drained (unchanged)\n", "")


def test_the_drain_of_another_owner_is_replaced_only_with_force(run: Run) -> None:
    run("drain", "main", "--reason", "new disk", "--owner", "bob")
    code, _output, errors = run("drain", "side", "main", "--reason", "update")
    assert code == 1
    assert "main is already drained by bob until undrained: new disk. Nothing was changed" in errors
    assert run("drains")[1].count("\n") == 1
    assert run("drain", "main", "--reason", "update", "--force")[0] == 0
    assert "alice@node1" in run("drains")[1]


def test_a_dry_run_reports_the_change_and_makes_none(run: Run, run_json: RunJson, paths: Paths) -> None:
    drain = ("drain", "main", "--reason", "new disk")
    line = "main: drained by alice@node1 until undrained: new disk (would change)\n"
    assert run(*drain, "--dry-run") == (0, line, "")
    assert run_json(*drain, "--dry-run")[1]["changed"] is True
    assert not paths.drain("main").exists()
    run(*drain)
    assert run_json(*drain, "--dry-run")[1]["changed"] is False
    assert run(*drain, "--dry-run", "--owner", "bob")[0] == 1, "the drain of another owner is refused"
    assert run("undrain", "main", "--dry-run") == (0, "main: not drained (would change)\n", "")
    assert run_json("undrain", "main", "--dry-run", "--owner", "bob")[1]["changed"] is False
    assert run_json("undrain", "main", "--dry-run")[1]["changed"] is True
    assert paths.drain("main").exists()
    run("undrain", "main")
    assert run_json("undrain", "main", "--dry-run")[1]["changed"] is False


@pytest.mark.parametrize("owner", ["", " "])
def test_without_a_name_of_an_owner_the_caller_owns_the_drain(run: Run, owner: str) -> None:
    assert run("drain", "main", "--reason", "new disk", "--owner", owner)[0] == 0
    assert run("drains")[1] == "main: drained by alice@node1 until undrained: new disk\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mian", "--reason", "x"], "did you mean 'main'? known: main, side"),
        (["main", "--reason", " "], "--reason is empty"),
        (["main", "--reason", "x", "--for", "30"], "--for: '30' is no duration"),
        (["main", "--reason", "x", "--for", "9999999d"], "--for: "),
        (["main", "--reason", "x", "--for", ""], "--for: '' is no duration"),
        (["main", "--reason", "x", "--until", "2027-01-01T00:00:00"], "has no time zone"),
        (["main", "--reason", "x", "--until", "2020-01-01T00:00:00Z"], "is past: give a time after "),
    ],
)
def test_wrong_arguments_of_drain_are_wrong_usage_and_drain_nothing(
    run: Run, paths: Paths, arguments: list[str], words: str
) -> None:
    code, _output, errors = run("drain", *arguments)
    assert code == 2
    assert words in errors
    assert drains.names(paths) == []


def test_the_drain_of_a_removed_instance_can_be_removed(run: Run, paths: Paths) -> None:
    files.write_json(paths.drain("gone"), {"schema": 1})
    assert run("undrain", "gone")[0] == 0
    assert run("undrain", "gone")[0] == 2
    assert drains.names(paths) == []


def test_a_drain_on_a_follower_of_a_gang_is_refused_with_the_name_of_its_leader(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gangs, "leader", lambda _paths, name: "gpu-01" if name == "main" else "")
    code, _output, errors = run("drain", "side", "main", "--reason", "new disk")
    assert code != 0 and "main follows gpu-01 here" in errors and "run the command on gpu-01" in errors
    assert not paths.drain("side").exists()
