# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of models that make vectors, scores and classes. They count failures as the clients of load.py do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from load import SHOWN, Connection, FailedRequest, Load, Shape


@dataclass(frozen=True)
class Asked:
    """A request to a name, and the check of its answer."""

    path: str
    body: Mapping[str, Any]
    """The body without the model."""
    right: Callable[[dict[str, Any]], bool]


class PoolingLoad(Load):
    """Clients that send one request after the other, to each name in turn."""

    def __init__(
        self, url: str, asked: Mapping[str, Asked], clients: int, key: str, pause_seconds: float = 0.5
    ) -> None:
        super().__init__(url, tuple(asked), clients, key, (Shape(False, 0),), pause_seconds=pause_seconds)
        self.asked = asked

    async def _one(self, connection: Connection, model: str, shape: Shape) -> None:
        asked = self.asked[model]
        body = json.dumps({"model": model, **asked.body}).encode()
        status, answer = await connection.post(asked.path, self.headers, body)
        text = await answer.whole()
        if not answer.keep:
            connection.close()
        if not 200 <= status < 300:
            raise FailedRequest(f"status {status} [{text[:SHOWN].decode(errors='replace')}]")
        if not asked.right(json.loads(text)):
            raise FailedRequest(f"a wrong answer [{text[:SHOWN].decode(errors='replace')} by the name {model}]")
        self.report.texts[model] += 1
