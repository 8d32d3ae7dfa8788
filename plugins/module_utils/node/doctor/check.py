# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check is, and how all of them are run. Private to the collection.

A check that breaks or takes too long says `unknown`: it condemns no node.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

SCHEMA = 1

OK, UNKNOWN, WARN, FAIL = "ok", "unknown", "warn", "fail"
"""Statuses, from the best to the worst."""

STATUSES = (OK, UNKNOWN, WARN, FAIL)

LIMIT = 30.0
"""Seconds for a check. All of them run at once, and so does the doctor: nvidia-smi of 8 GPUs takes 3 s without
persistence mode, and up to this where one of them is ill."""

T = TypeVar("T")


class CannotTell(Exception):
    """A check has no answer; the message says why."""


@dataclass(frozen=True)
class Finding:
    """What a check found. `action` says what to do, empty where nothing is to be done."""

    status: str
    message: str
    action: str = ""


@dataclass(frozen=True)
class Result:
    """A finding under its check's name, as `inferctl doctor --json` shows it."""

    name: str
    status: str
    message: str
    action: str


@dataclass(frozen=True)
class Check(Generic[T]):
    """A question about a host. `find` may raise CannotTell, or anything else: then the answer is unknown."""

    name: str
    find: Callable[[T], Finding]
    limit: float = LIMIT

    @property
    def kind(self) -> str:
        """The first word of its name: driver, gpu, rdma, system, docker, engine."""
        return self.name.partition("-")[0]


class Once(Generic[T]):
    """A value that several checks need, and that the first of them looks up for all."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: T | None = None
        self._error: Exception | None = None
        self._done = False

    def __call__(self) -> T:
        with self._lock:
            if not self._done:
                try:
                    self._value = self._make()
                except Exception as error:
                    self._error = error
                self._done = True
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


def run(checks: Sequence[Check[T]], host: T) -> list[Result]:
    """Run the checks at once, each for its own time at most. Raises nothing."""
    answers: list[Finding | None] = [None] * len(checks)

    def ask(index: int) -> None:
        try:
            answers[index] = checks[index].find(host)
        except CannotTell as reason:
            answers[index] = Finding(UNKNOWN, str(reason))
        except Exception as error:
            answers[index] = Finding(UNKNOWN, f"the check itself is broken: {error!r}", "report it with this line")

    # Daemons: what hangs in the kernel must not hold up the exit.
    threads = [threading.Thread(target=ask, args=(index,), daemon=True) for index in range(len(checks))]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    results = []
    for index, check in enumerate(checks):
        threads[index].join(max(0.0, began + check.limit - time.monotonic()))
        late = Finding(UNKNOWN, f"no answer within {check.limit:g} s", "something hangs: see dmesg")
        found = answers[index] or late
        results.append(Result(check.name, found.status, found.message, found.action))
    return results


def verdict(results: Iterable[Result]) -> str:
    """The worst status of all, `ok` of none."""
    return max((result.status for result in results), key=STATUSES.index, default=OK)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """The document of `inferctl doctor --json`."""
    return {"schema": SCHEMA, "verdict": verdict(results), "checks": [asdict(result) for result in results]}


def problems(results: Iterable[Result], *, actions: bool) -> list[str]:
    """A line for each check that is not ok, the worst first; with `actions`, each says what to do."""
    wrong = [result for result in results if result.status != OK]
    wrong.sort(key=lambda result: -STATUSES.index(result.status))
    return [
        f"{result.status}: {result.name}: {result.message}"
        + (f" -> {result.action}" if actions and result.action else "")
        for result in wrong
    ]


def as_text(results: Sequence[Result]) -> str:
    """A table for people, the worst first, and what to do about each."""
    count = Counter(result.status for result in results)
    summary = ", ".join(f"{count[status]} {status}" for status in reversed(STATUSES) if count[status])
    width = max((len(result.name) for result in results), default=0)
    lines = []
    for result in sorted(results, key=lambda result: -STATUSES.index(result.status)):
        lines.append(f"{result.status.upper():<7}  {result.name:<{width}}  {result.message}")
        if result.action:
            lines.append(f"{'':<7}  {'':<{width}}  -> {result.action}")
    return "\n".join([f"{verdict(results)}: {summary or 'nothing was checked'}", "", *lines])
