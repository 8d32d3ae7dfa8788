# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clients of the scenario handover lose no error: each error is a failed request, or is raised by stop()."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

MOLECULE = Path(__file__).parents[3] / "molecule"
sys.path[:0] = [str(MOLECULE / "shared"), str(MOLECULE / "handover/lab")]

from clients import Arrivals, Http2


@pytest.mark.parametrize("error", [TypeError("no number"), ValueError("no number"), RuntimeError("no number")])
def test_an_answer_of_a_wrong_form_is_a_failed_request(error: Exception) -> None:
    async def ask(_url: str) -> None:
        raise error

    clients = Arrivals(["http://gw1", "http://gw2"], ask, 0.01)
    clients.start()
    time.sleep(0.05)
    report = clients.stop()
    assert report.succeeded == 0 and len(report.failures) >= 2
    assert {failure.partition(" [")[0] for failure in report.failures} == {"no number"}


def test_clients_that_cannot_send_requests_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    clients = Http2("https://127.0.0.1:1")
    clients.start()
    with pytest.raises(FileNotFoundError, match="curl"):
        clients.stop()
