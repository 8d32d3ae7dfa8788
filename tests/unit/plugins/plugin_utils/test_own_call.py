# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that the worker process on the controller answers itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.call import Call
from ansible_collections.baremetal.inference.plugins.plugin_utils.own_call import answer

SPECIFICATION: dict[str, Any] = {
    "argument_spec": {
        "state": {"choices": ["described", "absent"]},
        "models": {"type": "dict"},
        "count": {"type": "int"},
        "names": {},
    },
    "required_if": [("state", "described", ("models",))],
    "mutually_exclusive": [("count", "names")],
    "supports_check_mode": True,
}
GIVEN = {"state": "described", "models": {}, "count": "3"}
LEFT_OUT = object()


def answered(implementation: Callable[[Call], None], check_mode: bool = False, **given: Any) -> dict[str, Any]:
    options = {name: value for name, value in {**GIVEN, **given}.items() if value is not LEFT_OUT}
    return answer(implementation, SPECIFICATION, options, check_mode=check_mode)


def test_the_implementation_gets_checked_options_and_the_check_mode() -> None:
    def implementation(module: Call) -> None:
        module.exit_json(changed=False, params=module.params, check_mode=module.check_mode)

    params = {"state": "described", "models": {}, "count": 3, "names": None}
    assert answered(implementation) == {"changed": False, "params": params, "check_mode": False}
    assert answered(implementation, check_mode=True)["check_mode"] is True


def test_a_failure_and_its_warnings_are_the_result() -> None:
    def implementation(module: Call) -> None:
        module.warn("one is odd")
        module.fail_json(msg="two are broken", names=["a"])

    result = {"failed": True, "msg": "two are broken", "names": ["a"], "warnings": ["one is odd"]}
    assert answered(implementation) == result


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state": "gone"}, "value of state must be one of: described, absent, got: gone"),
        ({"models": LEFT_OUT}, "state is described but all of the following are missing: models"),
        ({"modles": {}}, "modles"),
        ({"names": "a"}, "parameters are mutually exclusive: count|names"),
    ],
)
def test_wrong_options_are_refused_as_in_a_module(given: dict[str, Any], words: str) -> None:
    result = answered(lambda module: pytest.fail("the implementation ran"), **given)
    assert result["failed"] and words in result["msg"]


def test_get_bin_path_finds_programs_and_run_command_is_refused() -> None:
    def implementation(module: Call) -> None:
        with pytest.raises(NotImplementedError):
            module.run_command(["true"])
        module.exit_json(shell=module.get_bin_path("sh"), other=module.get_bin_path("no-such-program"))

    result = answered(implementation)
    assert result["shell"].endswith("/sh") and result["other"] is None


def test_an_implementation_must_end_with_a_result() -> None:
    with pytest.raises(RuntimeError):
        answered(lambda module: None)
