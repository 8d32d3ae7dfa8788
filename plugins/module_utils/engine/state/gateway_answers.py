# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each gateway last asked about an instance, and what the agent answered. Private to the collection.

The agent writes a file for each instance. The file is in memory: a boot removes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...core import files
from ...core.paths import Paths

SCHEMA = 1

SILENT_SECONDS = 5.0
"""Seconds after which a gateway counts as silent. A gateway asks each second."""

FORGET_SECONDS = 300.0
"""A gateway that has not asked for so long is dropped, such as one that was removed or renamed."""


@dataclass(frozen=True)
class GatewayAnswer:
    """The last answers to one gateway."""

    gateway: str
    """The gateway's name in the inventory."""
    word: str
    """The answer's first word: up, drain or down."""
    times: int
    """How often in a row the gateway got this word."""
    asked: float
    """When the gateway asked last, in seconds of the node's monotonic clock."""


class GatewayAnswers:
    """The agent's last answers about one instance. Times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._last: dict[str, GatewayAnswer] = {}

    def record(self, gateway: str, answer: str, now: float) -> bool:
        """Record an answer. Returns whether the gateway got another word than before, or is new."""
        word = answer.partition(" ")[0]
        before = self._last.get(gateway)
        changed = before is None or before.word != word
        self._last[gateway] = GatewayAnswer(gateway, word, 1 if before is None or changed else before.times + 1, now)
        for name in [name for name, last in self._last.items() if now - last.asked > FORGET_SECONDS]:
            del self._last[name]
        return changed

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "gateways": [asdict(last) for _name, last in sorted(self._last.items())]}


def read(paths: Paths, name: str) -> list[GatewayAnswer]:
    """The last answers about an instance; empty where the file is missing or damaged."""
    try:
        value = files.read_json(paths.gateway_answers(name))
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            return []
        return [
            GatewayAnswer(str(each["gateway"]), str(each["word"]), int(each["times"]), float(each["asked"]))
            for each in value["gateways"]
        ]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return []
