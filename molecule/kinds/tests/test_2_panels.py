# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboard of a model has data of engines that make vectors, scores and classes."""

from __future__ import annotations

from typing import Any

import pytest
from engine_metrics import panels, read_by, totals
from node import Node, wait_for

TEXTS = ("The cat sat on the mat.", "9475 0023 1187")

ASKED = {
    "embed": (5006, "/v1/embeddings", {"input": TEXTS[0]}),
    "rank": (5007, "/v1/score", {"text_1": TEXTS[0], "text_2": TEXTS[1]}),
}
"""A request by instance: port, path and body."""


def metrics(row: str) -> set[str]:
    """The engine's metrics that the panels below a row of the dashboard read."""
    found: dict[str, set[str]] = {}
    under = ""
    for panel in panels():
        under = panel["title"] if panel["type"] == "row" else under
        queries = [target["expr"] for target in panel.get("targets", [])]
        found.setdefault(under, set()).update(name for query in queries for name in read_by(query))
    (names,) = [names for title, names in found.items() if title.startswith(row)]
    return names


@pytest.mark.parametrize("name", ASKED)
def test_a_request_is_in_the_panels_of_its_task(deb13: Node, name: str) -> None:
    port, path, body = ASKED[name]
    wanted = metrics("Vectors, scores and classes")
    assert len(wanted) > 1

    def ask() -> dict[str, float]:
        request: dict[str, Any] = {"model": name, **body}
        status, answer = deb13.request(path, request, port)
        assert status == 200, answer
        return totals(deb13, port, wanted)

    before = ask()
    assert set(before) == wanted, "the engine has other names for these metrics"
    ask()
    wait_for("each metric grows", lambda: all(totals(deb13, port, wanted)[one] > before[one] for one in wanted), 10)


@pytest.mark.parametrize("name", ASKED)
def test_the_panels_of_all_tasks_have_series(deb13: Node, name: str) -> None:
    wanted = metrics("All tasks")
    assert set(totals(deb13, ASKED[name][0], wanted)) == wanted
