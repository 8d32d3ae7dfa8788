# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what systemd and the journal say to a verdict and to the last log lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import environment
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import attempts

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
        # It served before, and is on its way back.
        (unit("activating", "auto-restart"), 0, "loading"),
        (unit("activating", "start", restarts=1), 1, "loading"),
        # Its file was deleted: no reason to take it for one that does not run.
        (unit("activating", "start", LoadState="not-found"), 1, "loading"),
        # A new start after a stop, before its own count is written.
        (unit("activating", "start-pre"), 7, "loading"),
        (unit("deactivating", "stop-post"), 1, "loading"),
    ],
)
def test_judge(properties: dict[str, str], attempt: int, state: str) -> None:
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


def test_attempts(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert attempts.count(paths, "main") == 0
    assert [attempts.begin(paths, "main", restarts) for restarts in (0, 1, 2)] == [1, 2, 3]
    assert attempts.count(paths, "main") == 3
    assert attempts.begin(paths, "main", 0) == 1
    attempts.ready(paths, "main")
    assert attempts.count(paths, "main") == 0
    # systemd restarts an engine that has served: its first attempt.
    assert attempts.begin(paths, "main", 4) == 1
    for damage in ("{", "[]", '{"attempt": null}', '{"attempt": "many"}'):
        paths.starts("main").write_text(damage)
        assert attempts.count(paths, "main") == 0, damage
    paths.starts("main").unlink()
    paths.starts("main").mkdir()
    assert attempts.count(paths, "main") == 0


def entries(*messages: Any) -> list[dict[str, Any]]:
    return [message if isinstance(message, dict) else {"MESSAGE": message} for message in messages]


def test_the_words_are_those_of_the_last_start() -> None:
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


def test_colours_and_bytes() -> None:
    raw = json.dumps({"MESSAGE": list(b"\x1b[31mbroken\x1b[0m")}).encode() + b"\nno json\n"
    assert wait.select(wait.parse_journal(raw), retrying=False) == "broken"


def test_secrets_are_masked(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.env("main").parent.mkdir(parents=True)
    paths.env("main").write_text("HOME=/mnt/cache\nVLLM_API_KEY=short\nMY_PAT=long-secret=1\nLIMIT=1234567890\n")
    values = environment.secrets(environment.read(paths, "main"))
    text = (
        "/mnt/cache short long-secret=1 1234567890 Authorization: Bearer abc hf_abcdefghijklmnopqrstuvwx api_key=['k']"
    )
    masked = environment.mask(text, values)
    assert masked == "/mnt/cache *** *** 1234567890 Authorization: Bearer *** *** api_key=['***']"
    assert environment.read(paths, "nobody") == {}
