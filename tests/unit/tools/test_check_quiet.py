# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that would write a secret to the journal is found."""

from __future__ import annotations

import check_quiet
import pytest

LOUD, QUIET = "AnsibleModule", "QuietModule"
INNER = "{'maps': {'type': 'dict', 'no_log': True}}"


def found(specification: str, kind: str = LOUD, before: str = "", sent: str = LOUD) -> list[str]:
    text = f"{before}\ndef main():\n    module = {kind}(argument_spec={specification})\n"
    return check_quiet.problems("plugins/modules/x.py", text, f"{sent}()")


@pytest.mark.parametrize(
    ("specification", "before"),
    [
        (f"{{'plan': {{'type': 'dict', 'options': {INNER}}}}}", ""),
        (f"{{'plan': {{'type': 'list', 'elements': 'dict', 'options': {INNER}}}}}", ""),
        (f"{{'a': {{'type': 'dict', 'options': {{'b': {{'type': 'dict', 'options': {INNER}}}}}}}}}", ""),
        ("{'plan': {'type': 'dict', 'options': PLAN}}", f"PLAN: dict = {INNER}"),
        ("{'plan': PLAN}", f"INNER = {INNER}\nPLAN = {{'type': 'dict', 'options': INNER}}"),
        ("{'plan': {'type': 'dict', 'options': {'key': {**TEXT, 'no_log': True}}}}", "TEXT = {'type': 'str'}"),
        ("dict(plan=dict(type='dict', options=dict(key=dict(type='str', no_log=True))))", ""),
    ],
)
def test_a_secret_inside_of_a_dictionary_needs_a_quiet_module(specification: str, before: str) -> None:
    (problem,) = found(specification, before=before)
    assert problem.startswith("plugins/modules/x.py:") and "plugins/modules/x.py must be a QuietModule" in problem
    assert found(specification, QUIET, before) == []


@pytest.mark.parametrize(
    "specification",
    [
        "{'password': {'type': 'str', 'no_log': True}}",
        "{'logins': {'type': 'dict', 'no_log': True}}",
        "{'engine': {'type': 'dict', 'options': {'repository_key': {'type': 'str', 'no_log': False}}}}",
    ],
)
def test_other_options_need_no_quiet_module(specification: str) -> None:
    assert found(specification) == []


def test_a_module_that_is_not_sent_needs_a_quiet_node_call() -> None:
    specification = f"{{'plan': {{'type': 'dict', 'options': {INNER}}}}}"
    (problem,) = found(specification, before="node_call.refuse()")
    assert "node_call.py must be a QuietModule" in problem
    assert found(specification, before="node_call.refuse()", sent=QUIET) == []


def test_the_modules_of_this_collection_are_quiet() -> None:
    assert check_quiet.main() == 0
