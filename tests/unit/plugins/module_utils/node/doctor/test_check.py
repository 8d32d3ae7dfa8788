# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How checks run and are reported: a check that breaks or hangs is unknown, and delays no other check."""

from __future__ import annotations

import time

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import doctor
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    UNKNOWN,
    WARN,
    CannotTell,
    Check,
    Finding,
    Result,
)


def broken(_host: None) -> Finding:
    raise KeyError("oops")


def silent(_host: None) -> Finding:
    raise CannotTell("no answer", "ask again")


def slow(_host: None) -> Finding:
    time.sleep(5)
    return Finding(FAIL, "too late")


def fine(_host: None) -> Finding:
    return Finding(OK, "fine")


def test_a_broken_or_late_check_is_unknown_and_delays_no_other_check() -> None:
    began = time.monotonic()
    checks = [Check("a-slow", slow, 0.2), Check("b-broken", broken), Check("c-silent", silent), Check("d-fine", fine)]
    found = check.run(checks, None)
    assert time.monotonic() - began < 2
    assert [result.status for result in found] == [UNKNOWN, UNKNOWN, UNKNOWN, OK]
    assert "0.2 s" in found[0].message
    assert "KeyError" in found[1].message
    assert (found[2].message, found[2].action) == ("no answer", "ask again")
    assert check.verdict(found) == UNKNOWN


def test_a_shared_value_that_cannot_be_read_is_tried_only_once() -> None:
    calls = []

    def make() -> int:
        calls.append(1)
        raise CannotTell("no", "nothing")

    once = check.Once(make)
    for _time in range(2):
        with pytest.raises(CannotTell):
            once()
    assert len(calls) == 1


def results(*statuses: str) -> list[Result]:
    return [Result(f"x-{status}", status, f"it is {status}", "do it" if status == FAIL else "") for status in statuses]


@pytest.mark.parametrize(
    ("statuses", "verdict", "code"),
    [
        ((), OK, 0),
        ((OK,), OK, 0),
        ((OK, UNKNOWN), UNKNOWN, 1),
        ((UNKNOWN, WARN), WARN, 1),
        ((WARN, FAIL, UNKNOWN), FAIL, 2),
    ],
)
def test_the_worst_status_is_the_verdict(statuses: tuple[str, ...], verdict: str, code: int) -> None:
    found = results(*statuses)
    assert check.verdict(found) == verdict
    assert doctor.CODES[verdict] == code
    assert check.as_json(found)["verdict"] == verdict


def test_the_table_begins_with_the_worst_check_and_its_action() -> None:
    lines = check.as_text(results(OK, FAIL), whole=True).splitlines()
    assert lines[0] == "fail: 1 fail, 1 ok. This node is not fit to serve."
    assert lines[2].startswith("FAIL") and lines[3].strip() == "-> do it"


@pytest.mark.parametrize(
    ("statuses", "line"),
    [
        ((OK, OK), "ok: 2 ok. This node is fit to serve."),
        ((OK, UNKNOWN), "unknown: 1 unknown, 1 ok. No check failed; read what is unknown."),
        ((WARN, UNKNOWN), "warn: 1 warn, 1 unknown. This node is fit to serve; read the warnings."),
        ((), "ok: nothing was checked"),
    ],
)
def test_the_first_line_says_whether_the_node_is_fit(statuses: tuple[str, ...], line: str) -> None:
    assert check.as_text(results(*statuses), whole=True).splitlines()[0] == line


def test_some_checks_alone_give_no_verdict_of_the_node() -> None:
    assert check.as_text(results(OK), whole=False).splitlines()[0] == "ok: 1 ok"


def test_the_worst_problem_comes_first_with_its_action() -> None:
    results = [
        Result("gpu-a", WARN, "warm", ""),
        Result("gpu-b", OK, "fine", ""),
        Result("gpu-c", FAIL, "gone", "reboot"),
    ]
    assert check.problems(results, actions=True) == ["fail: gpu-c: gone -> reboot", "warn: gpu-a: warm"]
    assert check.problems(results, actions=False) == ["fail: gpu-c: gone", "warn: gpu-a: warm"]
