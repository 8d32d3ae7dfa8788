# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of an update say where something does not answer, or is not there yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import throughput
from ansible_collections.baremetal.inference.plugins.modules import (
    engine_probe,
    engine_watch,
)

RunModule = Callable[..., dict[str, Any]]


def test_an_engine_that_is_not_fit_has_the_last_word(monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    monkeypatch.setattr(engine_probe.wait, "last_words", lambda paths, name, retrying: f"CUDA error of {name}")
    said = run_module(engine_probe, name="main", release=2)
    assert said["failed"] and said["msg"].startswith("release 2 of main is not fit to serve: ")
    assert said["msg"].endswith(". Its last words:\nCUDA error of main")


LOOKS = {
    seconds: throughput.Look("tiny-a", at=seconds, started=1.0, tokens=40 * seconds, seconds=seconds, work=60 * seconds)
    for seconds in (10.0, 20.0)
}


@pytest.mark.parametrize(
    ("before", "bound", "failed", "words"),
    [
        (
            True,
            0.25,
            True,
            "main got too slow: under its clients' load, a request gets 4.0 tokens/s (400 counted, 10.0 requests",
        ),
        (True, 0.1, False, "under its clients' load, a request gets 4.0 tokens/s"),
        (False, 0.25, False, "is not judged: its counters tell nothing of the time before"),
        (True, 0.0, False, ""),
    ],
)
def test_an_engine_that_is_slow_for_its_clients_fails_the_watch(
    monkeypatch: pytest.MonkeyPatch, run_module: RunModule, before: bool, bound: float, failed: bool, words: str
) -> None:
    shown = {"vllm@main.service": {"ActiveState": "active", "InvocationID": "1"}}
    monkeypatch.setattr(engine_watch.systemd, "show", lambda units, properties: shown)
    # It is another process, and takes ten times as long for its tokens.
    looks = [throughput.Look("tiny-a", at, 2.0, tokens=40 * at, seconds=10 * at, work=60 * at) for at in (70.0, 80.0)]
    monkeypatch.setattr(throughput, "look", lambda paths, name: looks.pop(0))
    counted = [asdict(look) for look in LOOKS.values()] if before else [{}, asdict(LOOKS[20.0])]
    said = run_module(engine_watch, name="main", seconds=0, before=counted, speed_bound=bound)
    assert said.get("failed", False) == failed
    assert words in said["msg" if failed else "speed"] and (words or not said["speed"])
    if failed:
        assert said["msg"].endswith("; vllm_update_watch_speed_bound allows no less than 0.25 of before")
