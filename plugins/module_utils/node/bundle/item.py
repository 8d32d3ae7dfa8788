# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One part of a bundle, collected within a time limit. Private to the collection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

COLLECTED, PARTIAL, ABSENT, FAILED = "collected", "partial", "absent", "failed"
"""Complete; incomplete, since the program broke off or failed; not on this node, or empty; could not be collected."""


class Absent(Exception):
    """This node does not have the part; the message says what is missing."""


class Incomplete(Exception):
    """The collection broke off; `text` is what arrived before."""

    def __init__(self, reason: str, text: str = "") -> None:
        self.text = text
        super().__init__(reason)


@dataclass(frozen=True)
class Item:
    """A file of the bundle. `source` is a command or path, `limit` is in seconds.

    `make` returns the text without secrets. It may raise Absent, Incomplete, or any other exception.
    """

    file: str
    source: str
    make: Callable[[], str]
    limit: float


@dataclass(frozen=True)
class Part:
    """The result of an item, for the manifest. `reason` is set unless the item is collected."""

    file: str
    source: str
    status: str
    size: int
    seconds: float
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def collect(item: Item) -> tuple[Part, str]:
    """Collect one item. Returns the result and the text, which may be empty. Raises nothing."""
    began = time.monotonic()
    status, text, reason = _make(item)
    return Part(item.file, item.source, status, len(text.encode()), round(time.monotonic() - began, 1), reason), text


def _make(item: Item) -> tuple[str, str, str]:
    outcome: list[tuple[str, str, str]] = []

    def work() -> None:
        try:
            text = item.make()
            outcome.append((COLLECTED, text, "") if text else (ABSENT, "", "it is empty"))
        except Absent as reason:
            outcome.append((ABSENT, "", str(reason)))
        except Incomplete as error:
            outcome.append((PARTIAL if error.text.strip() else FAILED, error.text, str(error)))
        except Exception as error:
            outcome.append((FAILED, "", f"{type(error).__name__}: {error}"))

    # A daemon thread, since a thread that hangs in the kernel must not delay the exit.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(item.limit)
    return outcome[0] if outcome else (FAILED, "", f"did not end within {item.limit:g} s")
