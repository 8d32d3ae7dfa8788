# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals, the death of a process and finished work, each of which can end a wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.events import Events, Job, open_pidfd

LONG = 10.0
"""A limit in seconds that no wait reaches, since its event happens earlier."""


@pytest.fixture
def events() -> Iterator[Events]:
    with Events() as found:
        yield found


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as found:
        yield found
        found.kill()


def wait_for(events: Events, job: Job[int]) -> None:
    while not job.done:
        events.wait(LONG)


def test_a_job_ends_a_wait_and_has_its_result(events: Events) -> None:
    job = Job(events, lambda: 7)
    wait_for(events, job)
    assert job.result() == 7


def test_a_job_raises_what_its_work_raised(events: Events) -> None:
    def fail() -> int:
        raise KeyError("oops")

    job = Job(events, fail)
    wait_for(events, job)
    with pytest.raises(KeyError, match="oops"):
        job.result()


def test_a_wait_ends_at_its_timeout(events: Events) -> None:
    events.wait(0)
    assert not events.stop and not events.died


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_wait_and_sets_stop(events: Events, number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    events.wait(LONG)
    assert events.stop


def test_a_signal_sets_stop_but_does_not_end_a_wait_that_ignores_signals(events: Events) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    began = time.monotonic()
    events.wait(0.1, signals=False)
    assert events.stop and time.monotonic() - began >= 0.1
    # The first wait has read the signal from the socket, so the signal does not end the next wait either.
    began = time.monotonic()
    events.wait(0.1)
    assert time.monotonic() - began >= 0.1


def test_the_earlier_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Events():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_death_of_a_process_ends_a_wait(events: Events, process: subprocess.Popen[bytes]) -> None:
    assert not events.died
    pidfd = open_pidfd(process.pid)
    assert pidfd is not None
    events.watch(pidfd)
    assert not events.died
    process.kill()
    events.wait(LONG, signals=False)
    assert events.died
    os.close(pidfd)


def test_a_process_that_has_ended_has_no_pidfd(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert open_pidfd(process.pid) is None


def test_a_wake_after_the_events_are_closed_raises_no_exception() -> None:
    with Events() as events:
        pass
    events.wake()
