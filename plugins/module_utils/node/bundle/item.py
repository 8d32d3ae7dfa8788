# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A part of a bundle, and how it is collected: within its time, whatever it does. Private to the collection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

COLLECTED, PARTIAL, ABSENT, FAILED = "collected", "partial", "absent", "failed"
"""All of it; what there was before it broke off; this node has none; it could not be collected."""


class Absent(Exception):
    """This node has nothing of the kind; the message says what is missing."""


class Incomplete(Exception):
    """Something broke off; `text` is what there was before."""

    def __init__(self, reason: str, text: str = "") -> None:
        self.text = text
        super().__init__(reason)


@dataclass(frozen=True)
class Item:
    """A file of the bundle. `source` is the command or path that it comes from, `limit` seconds. `make` returns the
    text, without secrets; it may raise Absent, Incomplete, or anything else."""

    file: str
    source: str
    make: Callable[[], str]
    limit: float


@dataclass(frozen=True)
class Part:
    """What came of an item, as the manifest tells it; `reason` where it is not collected as a whole."""

    file: str
    source: str
    status: str
    size: int
    seconds: float
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def collect(item: Item) -> tuple[Part, str]:
    """Collect one item, and its text; empty where there is none. Raises nothing."""
    began = time.monotonic()
    status, text, reason = _make(item)
    return Part(item.file, item.source, status, len(text.encode()), round(time.monotonic() - began, 1), reason), text


def _make(item: Item) -> tuple[str, str, str]:
    outcome: list[tuple[str, str, str]] = []

    def work() -> None:
        try:
            text = item.make()
            outcome.append((COLLECTED, text, "") if text else (ABSENT, "", "there is nothing in it"))
        except Absent as reason:
            outcome.append((ABSENT, "", str(reason)))
        except Incomplete as error:
            outcome.append((PARTIAL if error.text.strip() else FAILED, error.text, str(error)))
        except Exception as error:
            outcome.append((FAILED, "", f"{type(error).__name__}: {error}"))

    # A daemon: what hangs in the kernel must not hold up the exit.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(item.limit)
    return outcome[0] if outcome else (FAILED, "", f"no end within {item.limit:g} s")
