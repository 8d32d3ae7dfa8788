# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play that does not set what its roles require is found, and one that sets it is not."""

from __future__ import annotations

import check_specs
import pytest

WANTED = {
    "gateway": {"main": {"gateway_agent_port"}, "left": set()},
    "backup": {"main": set(), "run": {"backup_paths"}},
}
INCLUDE = (
    "- hosts: all\n  tasks:\n    - block:\n        - ansible.builtin.include_role: {name: baremetal.inference.%s}\n"
)


def found(text: str, *given: str) -> list[str]:
    return check_specs.unset("file.yml", text, set(given), WANTED)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- hosts: all\n  roles:\n    - role: baremetal.inference.gateway\n", ["gateway_agent_port"]),
        (INCLUDE % "gateway", ["gateway_agent_port"]),
        (INCLUDE % "gateway, tasks_from: left", []),
        (INCLUDE % "gateway, tasks_from: reach", []),
        (INCLUDE % "backup", []),
        (INCLUDE % "backup, tasks_from: run", ["backup_paths"]),
        (INCLUDE % "gateway" + "          vars: {gateway_agent_port: 1}\n", []),
        (INCLUDE % "gateway" + "  vars: {gateway_agent_port: 1}\n", []),
        (INCLUDE % "gateway" + "  vars_files: [../../playbooks/vars/roles.yml]\n", []),
        ("- hosts: all\n  roles:\n    - role: other.collection.gateway\n", []),
        ("- import_playbook: baremetal.inference.site\n", []),
    ],
)
def test_a_required_variable_that_a_play_does_not_set_is_reported(text: str, names: list[str]) -> None:
    assert [problem.split()[-3].rstrip(":") for problem in found(text)] == names
    assert found(text, "gateway_agent_port", "backup_paths") == []


def test_a_problem_names_file_role_and_entry_point() -> None:
    (problem,) = found(INCLUDE % "backup, tasks_from: run")
    assert problem == "file.yml: role backup, run: requires backup_paths: set it"


def test_an_inventory_gives_its_variables_at_every_level() -> None:
    inventory = {"inference": {"vars": {"a": 1}, "hosts": {"one": {"b": {"c": 2}}, "two": None}}}
    assert {"a", "b", "c"} <= check_specs.names(inventory)


def test_the_required_variables_of_the_roles_are_read() -> None:
    wanted = check_specs.required()
    assert wanted["gateway"]["main"] == {"gateway_agent_port"}
    assert wanted["recovery"]["main"] == set()


def test_the_collection_sets_what_its_roles_require() -> None:
    assert check_specs.unset_anywhere() == []
