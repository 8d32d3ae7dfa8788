# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defines checks, and runs them. Private to the collection.

A check that breaks or takes too long gets the status `unknown`, which does not make the node unfit.
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
"""Limit for a check, in seconds. All checks run at once. nvidia-smi with 8 GPUs takes 3 s without persistence mode. If
a GPU is faulty, two calls take up to TOOL_TIMEOUT each (host.py)."""

SYSTEMD = "systemctl is-system-running; systemctl --failed"
"""What to do if systemd does not answer."""

T = TypeVar("T")


class CannotTell(Exception):
    """A check has no result; the message says why, and `action` what to do about that."""

    def __init__(self, reason: str, action: str) -> None:
        super().__init__(reason)
        self.action = action


@dataclass(frozen=True)
class Finding:
    """The result of a check. `action` says what to do, if anything."""

    status: str
    message: str
    action: str = ""


@dataclass(frozen=True)
class Result:
    """A finding with the name of its check, as `inferctl doctor --json` shows it."""

    name: str
    status: str
    message: str
    action: str


@dataclass(frozen=True)
class Check(Generic[T]):
    """A check of a host. If `find` raises CannotTell or any other exception, the status is unknown."""

    name: str
    find: Callable[[T], Finding]
    limit: float = LIMIT

    @property
    def kind(self) -> str:
        """The first word of the name: driver, gpu, rdma, system, docker, engine, gateway."""
        return self.name.partition("-")[0]


class Once(Generic[T]):
    """A value that several checks need. The first of them reads it for all."""

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
    """Run all checks at once, each within its limit. Raises nothing."""
    answers: list[Finding | None] = [None] * len(checks)

    def ask(index: int) -> None:
        try:
            answers[index] = checks[index].find(host)
        except CannotTell as reason:
            answers[index] = Finding(UNKNOWN, str(reason), reason.action)
        except Exception as error:
            answers[index] = Finding(UNKNOWN, f"the check itself is broken: {error!r}", "report this line as a bug")

    # Daemon threads, since a thread that hangs in the kernel must not delay the exit.
    threads = [threading.Thread(target=ask, args=(index,), daemon=True) for index in range(len(checks))]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    results = []
    for index, check in enumerate(checks):
        threads[index].join(max(0.0, began + check.limit - time.monotonic()))
        late = Finding(UNKNOWN, f"no result within {check.limit:g} s", "a program or device hangs: see dmesg")
        found = answers[index] or late
        results.append(Result(check.name, found.status, found.message, found.action))
    return results


def verdict(results: Iterable[Result]) -> str:
    """The worst status; `ok` if there are no results."""
    return max((result.status for result in results), key=STATUSES.index, default=OK)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """The document of `inferctl doctor --json`."""
    return {"schema": SCHEMA, "verdict": verdict(results), "checks": [asdict(result) for result in results]}


def problems(results: Iterable[Result], *, actions: bool) -> list[str]:
    """A line for each check that is not ok, worst first. With `actions`, each line has what to do."""
    wrong = [result for result in results if result.status != OK]
    wrong.sort(key=lambda result: -STATUSES.index(result.status))
    return [
        f"{result.status}: {result.name}: {result.message}"
        + (f" -> {result.action}" if actions and result.action else "")
        for result in wrong
    ]


FITNESS = {
    OK: "This node is fit to serve.",
    UNKNOWN: "No check failed; read what is unknown.",
    WARN: "This node is fit to serve; read the warnings.",
    FAIL: "This node is not fit to serve.",
}
"""What the verdict of all checks means for the node."""


def as_text(results: Sequence[Result], *, whole: bool) -> str:
    """A table for operators, worst first, with what to do. `whole`: whether all checks that are on were run, so
    that the verdict is the node's."""
    count = Counter(result.status for result in results)
    summary = ", ".join(f"{count[status]} {status}" for status in reversed(STATUSES) if count[status])
    width = max((len(result.name) for result in results), default=0)
    lines = []
    for result in sorted(results, key=lambda result: -STATUSES.index(result.status)):
        lines.append(f"{result.status.upper():<7}  {result.name:<{width}}  {result.message}")
        if result.action:
            lines.append(f"{'':<7}  {'':<{width}}  -> {result.action}")
    found = verdict(results)
    fitness = f". {FITNESS[found]}" if whole and results else ""
    return "\n".join([f"{found}: {summary or 'nothing was checked'}{fitness}", "", *lines])
