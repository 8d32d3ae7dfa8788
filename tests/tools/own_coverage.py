#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports how much of each source below plugins/ is run by its own test file. Other test files do not count.

The input is the measurement of `make coverage`. The program prints the sources below the goal, and does not fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[2]
GOAL = 70
"""Percent of the lines."""


def own_test(source: str) -> str:
    """The test file of a source: plugins/x/y.py has tests/unit/plugins/x/test_y.py."""
    folder, _, name = source.rpartition("/")
    return f"tests/unit/{folder}/test_{name}"


def measured(run: coverage.Coverage) -> dict[str, float]:
    """Percent of the lines of each source that ran in its own test file, or at import."""
    data, found = run.get_data(), {}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        source = str(path.relative_to(ROOT))
        _file, statements, _excluded, _missing, _text = run.analysis2(str(path))
        if not statements:
            continue
        # A context is TEST_FILE::test|phase; lines that run at import have an empty one.
        data.set_query_contexts([f"^{own_test(source)}::", "^$"])
        ran = set(data.lines(str(path)) or ()) if (ROOT / own_test(source)).exists() else set()
        found[source] = 100 * len(ran & set(statements)) / len(statements)
    return found


def main() -> None:
    run = coverage.Coverage(data_file=os.environ.get("COVERAGE_FILE", str(ROOT / ".cache/coverage")))
    run.load()
    percents = measured(run)
    low = {source: percent for source, percent in percents.items() if percent < GOAL}
    good = len(percents) - len(low)
    print(f"own tests: {good} of {len(percents)} sources are run to {GOAL} % or more by their own test file")
    for source, percent in sorted(low.items(), key=lambda item: item[1]):
        print(f"  {percent:3.0f} %  {source}")


if __name__ == "__main__":
    main()
