# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of an instance from the properties of its unit, and the last lines of its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait

STARTING = {"MESSAGE_ID": "7d4958e842da4a758f6c1cdc7b36dcc5", "MESSAGE": "Starting vllm@main.service"}


def unit(active: str, sub: str = "", restarts: int = 0, **more: str) -> dict[str, str]:
    properties = {"LoadState": "loaded", "ActiveState": active, "SubState": sub, "NRestarts": str(restarts), "Job": ""}
    return {**properties, "StatusText": "", "Result": "success", **more}


@pytest.mark.parametrize(
    ("properties", "attempt", "state"),
    [
        (unit("active", "running"), 0, "ready"),
        (unit("inactive", "dead", LoadState="not-found"), 0, "failed"),
        (unit("inactive", "dead"), 0, "failed"),
        (unit("failed", "failed", Result="start-limit-hit"), 5, "failed"),
        # Queued behind docker.service.
        (unit("inactive", "dead", Job="123"), 0, "loading"),
        (unit("activating", "start-pre"), 1, "loading"),
        (unit("activating", "start"), 1, "loading"),
        # The first start has failed: systemd counts the restart when it begins.
        (unit("activating", "auto-restart"), 1, "failed"),
        (unit("activating", "start-pre", restarts=1), 2, "failed"),
        (unit("activating", "start", restarts=3), 4, "failed"),
        # The engine served before, and systemd starts it again.
        (unit("activating", "auto-restart"), 0, "loading"),
        (unit("activating", "start", restarts=1), 1, "loading"),
        # A unit whose file was deleted still runs.
        (unit("activating", "start", LoadState="not-found"), 1, "loading"),
        # A new start after a stop: the recorded count is still that of the start before.
        (unit("activating", "start-pre"), 7, "loading"),
        (unit("deactivating", "stop-post"), 1, "loading"),
    ],
)
def test_the_properties_of_a_unit_give_the_state_of_its_start(
    properties: dict[str, str], attempt: int, state: str
) -> None:
    assert wait.judge(properties, attempt)[0] == state


def test_the_status_text_is_passed_on() -> None:
    properties = unit("activating", "start", StatusText="loading tiny-a: 5 of 60 s")
    assert wait.judge(properties, 1) == ("loading", "loading tiny-a: 5 of 60 s")


def test_waiting_ends_when_nothing_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter([unit("activating", "start"), unit("active", "running")])
    monkeypatch.setattr(systemd, "show", lambda units, properties: {"vllm@main.service": next(states)})
    monkeypatch.setattr(wait, "POLL_INTERVAL", 0)
    assert wait.wait_ready(Paths(tmp_path), ["main"], 60)[0].state == "ready"


def test_waiting_ends_at_the_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = unit("activating", "start", StatusText="loading")
    monkeypatch.setattr(systemd, "show", lambda units, properties: {"vllm@main.service": loading})
    assert wait.wait_ready(Paths(tmp_path), ["main"], 0) == [wait.Outcome("main", "loading", "loading")]


def entries(*messages: Any) -> list[dict[str, Any]]:
    return [message if isinstance(message, dict) else {"MESSAGE": message} for message in messages]


def test_the_lines_are_those_of_the_last_failed_start() -> None:
    log = entries(STARTING, "first", STARTING, "second", "second died")
    assert wait.select(log, retrying=False).splitlines() == ["Starting vllm@main.service", "second", "second died"]
    again = [*log, STARTING, {"MESSAGE": "third begins"}]
    assert "third" not in wait.select(again, retrying=True)
    assert wait.select(again, retrying=True).splitlines()[-1] == "second died"
    assert "first" not in wait.select(again, retrying=True)


@pytest.mark.parametrize(
    "cause",
    [
        ["(EngineCore pid=9) ERROR 11-21 02:59:53 [core.py:1100] ValueError: No available memory for blocks."],
        ["torch.OutOfMemoryError: CUDA out of memory."],
        ["RuntimeError: ", "        An attempt has been made to start a new process"],
    ],
)
def test_the_cause_above_a_long_traceback_is_kept(cause: list[str]) -> None:
    noise = ["(APIServer pid=7) WARNING 11-21 [x.py:1] this can cause errors like `OSError: [Errno 24]`", "    ^^^^"]
    lines = [*noise, *cause, *(f"line {number}" for number in range(60))]
    words = wait.select(entries(*lines), retrying=False).splitlines()
    assert words[: len(cause)] == [line.rstrip() for line in cause]
    assert words[-wait.LAST_WORDS - 1] == "[…]"
    assert words[-wait.LAST_WORDS :] == lines[-wait.LAST_WORDS :]


def test_colours_are_removed_and_bytes_are_decoded() -> None:
    raw = json.dumps({"MESSAGE": list(b"\x1b[31mbroken\x1b[0m")}).encode() + b"\nno json\n"
    assert wait.select(wait.parse_journal(raw), retrying=False) == "broken"
