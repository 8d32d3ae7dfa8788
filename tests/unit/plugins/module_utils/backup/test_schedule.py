# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup.schedule import BASE, longest_gap
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

# systemd 252, of Debian 12.
WORKDAYS = """\
  Original form: Mon..Fri 02:30
Normalized form: Mon..Fri *-*-* 02:30:00
    Next elapse: Thu 2026-01-01 02:30:00 UTC
       From now: 10 months 21 days ago
       Iter. #2: Fri 2026-01-02 02:30:00 UTC
       From now: 10 months 20 days ago
       Iter. #3: Mon 2026-01-05 02:30:00 UTC
       From now: 10 months 17 days ago
"""

ONCE = """\
  Original form: 2030-03-01 02:30:00 UTC
Normalized form: 2030-03-01 02:30:00 UTC
    Next elapse: Fri 2030-03-01 02:30:00 UTC
       From now: 3 years 3 months left
"""

DAY = 86400


class Fake:
    """A systemd-analyze with one answer."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.called: tuple[Sequence[str], Mapping[str, str]] = ((), {})

    def __call__(self, command: Sequence[str], timeout: float, environment: Mapping[str, str]) -> Outcome:
        self.called = (command, environment)
        return self.outcome


def test_the_longest_gap_between_two_runs_is_returned() -> None:
    fake = Fake(Outcome(0, WORKDAYS))
    assert longest_gap("Mon..Fri 02:30", fake) == 3 * DAY
    command, environment = fake.called
    # The result depends neither on the day of the call nor on the time zone of the node. After `--`, a schedule is no
    # option.
    assert f"--base-time={BASE}" in command and list(command[-2:]) == ["--", "Mon..Fri 02:30"]
    assert environment == {"TZ": "UTC"}


@pytest.mark.parametrize(
    "text",
    [WORKDAYS.replace("Iter.", "Iteration"), WORKDAYS.replace("02:30:00 UTC", "02:30:00.500000 UTC")],
    ids=["systemd-257", "fractions"],
)
def test_the_output_of_other_versions_is_read(text: str) -> None:
    assert longest_gap("x", Fake(Outcome(0, text))) == 3 * DAY


@pytest.mark.parametrize("text", [ONCE, "    Next elapse: never\n", ""], ids=["once", "never", "nothing"])
def test_a_schedule_that_runs_at_most_once_has_no_gap(text: str) -> None:
    assert longest_gap("x", Fake(Outcome(0, text))) is None


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(1, stderr="Failed to parse calendar specification"),
        Outcome(None, failure="not_installed", message="systemd-analyze is not installed"),
    ],
    ids=["no-time", "no-systemd"],
)
def test_a_failure_of_systemd_analyze_is_an_error_with_its_text(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match=outcome.message or outcome.stderr):
        longest_gap("soon", Fake(outcome))


@pytest.mark.usefixtures("systemd_analyze")
def test_the_gaps_of_the_real_systemd_are_right() -> None:
    expected = {
        "02:30": DAY,
        "Sun 02:30": 7 * DAY,
        "Mon..Fri 02:30": 3 * DAY,
        "*-*-1,15 02:30": 17 * DAY,
        "monthly": 31 * DAY,
        "*:0/15": 900,
        "02:30 Europe/Berlin": DAY,
        "2020-01-01": None,
    }
    assert {text: longest_gap(text) for text in expected} == expected
    with pytest.raises(ValueError, match="parse"):
        longest_gap("soon")
