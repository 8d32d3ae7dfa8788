# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of a scenario goes, read from recorded lines."""

from __future__ import annotations

import phases

PRINTED = """\
0 INFO     rolling ➜ create: Executing
4 PLAY [Create] ***
10 INFO     rolling ➜ create: Executed: Successful
11 \x1b[34mINFO\x1b[0m     \x1b[32mrolling\x1b[0m ➜ converge: Executing
71 INFO     rolling ➜ converge: Executed: Successful
71 INFO     rolling ➜ verify: Executing
90   │ 12.50s call     molecule/rolling/tests/test_1_updates.py::test_slow
90 0.20s setup    molecule/rolling/tests/test_1_updates.py::test_quick[deb12]
90 3.00s teardown molecule/rolling/tests/test_1_updates.py::test_slow
90 10 passed in 19.00s
91 INFO     rolling ➜ verify: Executed: Successful
"""


def test_actions_and_slow_tests_are_reported() -> None:
    now = [0.0]
    seen = phases.Phases(lambda: now[0])
    for line in PRINTED.splitlines(keepends=True):
        seconds, _, text = line.partition(" ")
        now[0] = float(seconds)
        seen.see(text)
    now[0] = 96
    assert seen.report("rolling").splitlines() == [
        "--- rolling: 1.6 min: molecule itself 6 s, create 10 s, converge 60 s, verify 20 s",
        "     12.5 s test_1_updates.py::test_slow (call)",
        "      3.0 s test_1_updates.py::test_slow (teardown)",
        "      0.2 s test_1_updates.py::test_quick[deb12] (setup)",
    ]


def test_only_the_slowest_tests_are_reported() -> None:
    seen = phases.Phases()
    for number in range(9):
        seen.see(f"{number}.00s call a/test_x.py::test_{number}")
    assert seen.report("x").count("test_x") == phases.SLOWEST
    assert "test_8" in seen.report("x")
