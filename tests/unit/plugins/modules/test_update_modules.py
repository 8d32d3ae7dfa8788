# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of an update say where something does not answer, or is not there yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import throughput
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel
from ansible_collections.baremetal.inference.plugins.modules import (
    engine_counter_facts,
    engine_probe,
    engine_update_facts,
    engine_watch,
    gateway_servers,
)

RunModule = Callable[..., dict[str, Any]]


def test_a_gateway_whose_haproxy_is_dead_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    (tmp_path / "haproxy.cfg").write_text("http-request lua.hold 90\n")
    monkeypatch.setattr(gateway_servers, "CONFIG", tmp_path / "haproxy.cfg")
    monkeypatch.setattr(gateway_servers, "CONTROL_SOCKET", str(tmp_path / "admin.sock"))
    said = run_module(gateway_servers, name="main", host="a", seconds=0)
    assert said["silent"].startswith("HAProxy does not answer: ") and not said["known"] and not said["reached"]
    assert said["hold_seconds"] == 90
    monkeypatch.setattr(gateway_servers, "look", lambda given: gateway_servers.Seen())
    monkeypatch.setattr(gateway_servers, "ENGINE_KEYS", tmp_path / "engines.map")
    said = run_module(gateway_servers, name="main", host="a", seconds=0)
    assert (said["silent"], said["keyed"]) == ("", False)
    (tmp_path / "engines.map").write_text("set_main-2 key-of-another\n")
    assert not run_module(gateway_servers, name="main", host="a", seconds=0)["keyed"]
    (tmp_path / "engines.map").write_text("set_main-2 key-of-another\nset_main key-of-today\n")
    said = run_module(gateway_servers, name="main", host="a", seconds=0)
    assert said["keyed"] and "key-of" not in json.dumps(said)


def test_a_gateway_is_asked_less_often_the_longer_it_takes() -> None:
    pauses = [gateway_servers.pause(waited) for waited in (0.0, 10.0, 600.0)]
    assert pauses == [gateway_servers.POLL_SECONDS, 1.0, gateway_servers.SELDOM_SECONDS]


def test_an_engine_that_is_not_fit_has_the_last_word(monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    monkeypatch.setattr(engine_probe.wait, "last_words", lambda paths, name, retrying: f"CUDA error of {name}")
    said = run_module(engine_probe, name="main", release=2)
    assert said["failed"] and said["msg"].startswith("release 2 of main is not fit to serve: ")
    assert said["msg"].endswith(". Its last words:\nCUDA error of main")


LOOKS = {
    seconds: throughput.Look("tiny-a", at=seconds, started=1.0, tokens=40 * seconds, seconds=seconds, work=60 * seconds)
    for seconds in (10.0, 20.0)
}


def test_what_engines_have_counted(monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    monkeypatch.setattr(throughput, "look", lambda paths, name: LOOKS[10.0] if name == "main" else None)
    said = run_module(engine_counter_facts, names=["main", "side"])
    assert said["counters"] == {"main": asdict(LOOKS[10.0]), "side": {}}


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


def given(check: bool, *unstaged: dict[str, Any], paths: Paths) -> engine_update_facts.Facts:
    values = {
        "unstaged": list(unstaged),
        "targets": {"main": 2},
        "rollback": False,
        "ask_engine": True,
        "ports": {"main": 5005},
        "address": "127.0.0.1",
        "api_key": "key-of-today",
        "gateways": True,
    }
    return engine_update_facts.Facts(paths, None, values, None, check)  # type: ignore[arg-type]


def test_check_mode_knows_the_model_of_what_it_did_not_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = given(True, {"name": "main", "model": "tiny-b", "model_path": "/mnt/models/b"}, paths=Paths(tmp_path))
    assert facts.check("main", 2) == ("tiny-b", "", [])
    assert facts.check("side", 2) == ("", "", [])
    # No engine can be asked about files that are not there.
    monkeypatch.setattr(engine_update_facts.releases, "active_number", lambda paths, name: 1)
    monkeypatch.setattr(engine_update_facts.install_state, "serving", lambda paths, name, now: True)
    monkeypatch.setattr(engine_update_facts.Facts, "load_seconds", lambda *asked: None)
    found = facts.of("main")
    assert (found["model"], found["target"], found["due"], found["problems"]) == ("tiny-b", 2, True, [])
    # It would have been staged as the inventory has it.
    assert found["keyed"] and found["moved"] == []


def test_how_long_another_model_may_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("8b", 1000), ("70b", 9000), ("1b", 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"0" * size)
    models = {1: "8b", 2: "70b", 3: "1b", 4: "gone", 5: "8b"}
    monkeypatch.setattr(load_time, "seconds", lambda name: 40.0)
    monkeypatch.setattr(engine_update_facts.releases, "numbers", lambda paths, name: list(models))
    monkeypatch.setattr(
        engine_update_facts.releases,
        "load",
        lambda paths, name, number: SimpleNamespace(model_path=str(tmp_path / models[number])),
    )
    unstaged = {"name": "main", "model": "x", "model_path": str(tmp_path / "70b")}
    facts, check = given(False, paths=Paths()), given(True, unstaged, paths=Paths())
    found = {number: facts.load_seconds("main", 1, number) for number in models}
    assert found == {1: 40.0, 2: 360.0, 3: 40.0, 4: None, 5: 40.0}
    assert check.load_seconds("main", 1, 9) == 360.0
    # It is not fetched yet.
    assert check.load_seconds("main", 1, 4) == 40.0


BEFORE, TODAY = "key-of-before", "key-of-today"


@pytest.fixture
def rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> Callable[..., dict[str, Any]]:
    """A node that runs its second release, and has served with its first: what a rollback to that one says."""
    paths = Paths(tmp_path)
    monkeypatch.setattr(engine_update_facts, "Paths", lambda: paths)
    monkeypatch.setattr(engine_update_facts.prepare, "missing", lambda release, docker: [])
    monkeypatch.setattr(load_time, "seconds", lambda name: 40.0)
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active")

    def keep(number: int, port: int, address: str, key: str) -> None:
        settings = Settings(address=address, environment={"VLLM_API_KEY": key} if key else {})
        made = render(
            Instance("main", f"tiny-{number}", port), [], StoredModel("/m", "r"), "i", settings, number=number
        )
        releases.stage(paths, "main", made.release.id, lambda _number: made, pytest.fail)
        history.add(paths, "main", history.Served(number, "2026-11-21T03:00:00Z"))

    def call(first: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        second: dict[str, Any] = {"port": 5005, "address": "192.0.2.11", "key": TODAY}
        keep(1, **{**second, **(first or {})})
        keep(2, **second)
        releases.activate(paths, "main", 2)
        asked = {"ports": {"main": 5005}, "address": "192.0.2.11", "api_key": TODAY, "gateways": True, **given}
        result = run_module(engine_update_facts, names=["main"], rollback=True, **asked)
        assert BEFORE not in json.dumps(result) and TODAY not in json.dumps({**result, "invocation": ""})
        (found,) = result["instances"]
        assert (found["target"], found["due"]) == (1, True)
        return dict(found)

    return call


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({"port": 5006}, "port 5006, and not 5005:"),
        ({"address": "127.0.0.1"}, "address 127.0.0.1, and not 192.0.2.11:"),
        ({"key": BEFORE}, "another key (vllm_api_key):"),
        (
            {"port": 5006, "address": "127.0.0.1", "key": BEFORE},
            "port 5006, and not 5005; address 127.0.0.1, and not 192.0.2.11; another key (vllm_api_key):",
        ),
    ],
)
def test_no_rollback_to_what_gateways_would_not_reach(
    rollback: Callable[..., dict[str, Any]], first: dict[str, Any], words: str
) -> None:
    found = rollback(first)
    (problem,) = found["problems"]
    assert problem.startswith(f"main: release 1 has {words} who goes by the inventory would not reach it.")
    assert found["moved"] == []


@pytest.mark.parametrize("first", [{}, {"address": "0.0.0.0"}, {"key": ""}])
def test_a_rollback_to_what_gateways_reach(rollback: Callable[..., dict[str, Any]], first: dict[str, Any]) -> None:
    found = rollback(first)
    assert (found["problems"], found["moved"], found["keyed"]) == ([], [], "key" not in first)


def test_without_gateways_address_and_key_may_go_back(rollback: Callable[..., dict[str, Any]]) -> None:
    assert rollback({"address": "127.0.0.1", "key": BEFORE}, gateways=False)["problems"] == []


@pytest.mark.parametrize(
    ("changed", "key"),
    [({"ports": {"main": 5006}}, "port"), ({"address": "127.0.0.1"}, "address"), ({"api_key": BEFORE}, "vllm_api_key")],
)
def test_no_rollback_while_gateways_would_be_told_wrong(
    rollback: Callable[..., dict[str, Any]], changed: dict[str, Any], key: str
) -> None:
    """At its end they take what the inventory says, and that is not checked before."""
    (problem,) = rollback(**changed)["moved"]
    assert problem.startswith(f"instance main: {key}:") and "is not the one" in problem
