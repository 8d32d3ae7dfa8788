# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each part of a bundle ends within its time limit, even if its source hangs or fails."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle import item


def test_an_empty_part_is_absent() -> None:
    part, _text = item.collect(item.Item("x", "y", lambda: "", 1))
    assert (part.status, part.reason) == (item.ABSENT, "it is empty")


def test_a_part_that_hangs_fails_at_its_limit() -> None:
    def hang() -> str:
        threading.Event().wait(30)
        return ""

    part, text = item.collect(item.Item("x", "y", hang, 0.05))
    assert (part.status, text) == (item.FAILED, "") and "did not end within" in part.reason


@pytest.mark.parametrize(
    ("error", "status", "text", "reason"),
    [
        (item.Absent("there is none"), item.ABSENT, "", "there is none"),
        (item.Incomplete("broke off", "half"), item.PARTIAL, "half", "broke off"),
        (item.Incomplete("broke off", " \n"), item.FAILED, " \n", "broke off"),
        (KeyError("oops"), item.FAILED, "", "KeyError: 'oops'"),
    ],
)
def test_the_error_of_a_source_decides_status_and_reason_of_the_part(
    error: Exception, status: str, text: str, reason: str
) -> None:
    def fail() -> str:
        raise error

    part, found = item.collect(item.Item("x", "y", fail, 10))
    assert (part.status, found, part.reason) == (status, text, reason)


def test_a_part_counts_its_bytes() -> None:
    part, text = item.collect(item.Item("x", "y -q", lambda: "ä", 10))
    assert text == "ä"
    assert {**part.to_json(), "seconds": 0.0} == {
        "file": "x",
        "source": "y -q",
        "status": "collected",
        "size": 2,
        "seconds": 0.0,
        "reason": "",
    }
