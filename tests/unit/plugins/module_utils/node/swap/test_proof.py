# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that is probed before clients reach an engine, its speed, and the watch. acceptance.py has the probe's
requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import DockerUnavailable
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import environment
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import (
    acceptance,
    health,
    probe,
    throughput,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    LABEL,
    Rendered,
    Settings,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import proof
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

SPEED = 40.0
STRANGER = "port 5005 is taken by another process: 77 (nginx): stop it"


def stage(paths: Paths, model: str, dtype: str) -> None:
    """Keep the next release of main."""

    def rendered(number: int) -> Rendered:
        instance = Instance(name="main", model=model, port=5005, accelerator="cpu")
        return render(instance, ["--dtype", dtype], StoredModel("/m", "r"), "image", Settings(), number=number)

    releases.stage(paths, "main", rendered(0).release.id, rendered, pytest.fail)


class Node:
    """A node whose engine passes the probe: releases 1 and 3 are of tiny-a, and 2 of tiny-b."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        for model, dtype in (("tiny-a", "float32"), ("tiny-b", "float32"), ("tiny-a", "half")):
            stage(paths, model, dtype)
        self.container: dict[str, Any] | None = {
            "State": {"Running": True, "Pid": 4711},
            "Config": {"Labels": {LABEL: "3"}},
        }
        self.verdict = probe.Verdict(True, "answered a completion")
        self.identified: list[tuple[int, int]] = []
        """The port and the process of each check that the engine's own process answers."""
        self.tried = 0

    def inspect(self, container: str) -> dict[str, Any] | None:
        return self.container if container == "vllm-main" else None

    def check(self, target: probe.Target, init_pid: int) -> probe.Verdict:
        self.identified.append((target.port, init_pid))
        return self.verdict

    def run(self, target: probe.Target, golden: object, timeout: float) -> acceptance.Result:
        self.tried += 1
        return acceptance.Result(["a stream came to its end"], SPEED)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    found = Node(Paths(tmp_path))
    monkeypatch.setattr(proof, "Docker", lambda: found)
    monkeypatch.setattr(proof.probe, "check", found.check)
    monkeypatch.setattr(proof.acceptance, "run", found.run)
    monkeypatch.setattr(proof.wait, "last_words", lambda paths, name, retrying: f"of {name}")
    return found


def test_the_process_of_the_release_is_probed(node: Node) -> None:
    found = proof.accept(node.paths, "main", 3, [])
    assert (found.steps, found.tokens_per_second) == (["a stream came to its end"], SPEED)
    assert node.identified == [(5005, 4711)] and node.tried == 1


def _gone(node: Node) -> None:
    node.container = None


def _stopped(node: Node) -> None:
    assert node.container
    node.container["State"] = {"Running": False, "Pid": 0}


def _of_release_2(node: Node) -> None:
    assert node.container
    node.container["Config"]["Labels"] = {LABEL: "2"}


def _unlabelled(node: Node) -> None:
    assert node.container
    node.container["Config"]["Labels"] = {}


def _stranger_answers(node: Node) -> None:
    node.verdict = probe.Verdict(False, STRANGER)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (_gone, "the container vllm-main does not run"),
        (_stopped, "the container vllm-main does not run"),
        (_of_release_2, "the container vllm-main runs release 2 instead of 3"),
        (_unlabelled, "the container vllm-main runs release None instead of 3"),
        (_stranger_answers, STRANGER),
    ],
)
def test_neither_another_release_nor_another_process_is_probed(
    node: Node, state: Callable[[Node], None], words: str
) -> None:
    state(node)
    with pytest.raises(proof.Unfit) as refused:
        proof.accept(node.paths, "main", 3, [])
    assert str(refused.value) == f"release 3 of main is not fit to serve: {words}. Its last log lines:\nof main"
    assert node.tried == 0


@pytest.mark.parametrize(
    ("origin", "before", "bound", "refused"),
    [
        (1, 100.0, 0.5, True),
        (1, 80.1, 0.5, True),
        (1, 80.0, 0.5, False),
        (1, 30.0, 0.5, False),
        # Another model has another speed.
        (2, 100.0, 0.5, False),
        (1, 100.0, 0, False),
        # The speed before is unknown: it was not measured, or no release served before.
        (1, None, 0.5, False),
        (9, 100.0, 0.5, False),
        (None, 100.0, 0.5, False),
    ],
)
def test_a_release_that_is_slower_than_the_one_before_is_refused(
    node: Node, origin: int | None, before: float | None, bound: float, refused: bool
) -> None:
    # The speed of another release in between does not count.
    for number, speed in ((origin or 1, before), (4, 1.0)):
        history.add(node.paths, "main", history.Served(number, "2026-11-21T03:15:02Z", 40.0, speed))
    if not refused:
        assert proof.accept(node.paths, "main", 3, [], origin=origin, speed_bound=bound).tokens_per_second == SPEED
        return
    with pytest.raises(proof.Unfit) as unfit:
        proof.accept(node.paths, "main", 3, [], origin=origin, speed_bound=bound)
    assert str(unfit.value) == (
        f"release 3 of main is not fit to serve: one request alone gets {SPEED} tokens per second, the release before"
        f" got {before}, and update_speed_bound is {bound}"
    )


def test_the_error_of_an_unfit_engine_has_its_last_log_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof.wait, "last_words", lambda paths, name, retrying: f"CUDA error of {name}")
    with pytest.raises(
        proof.Unfit, match=r"^release 2 of main is not fit to serve: .*\. Its last log lines:\nCUDA error"
    ):
        proof.accept(Paths(tmp_path), "main", 2, [])


@pytest.mark.parametrize(
    "failure",
    [
        acceptance.ProbeFailed("a stream", "Authorization: Bearer key-of-the-engine was refused", []),
        OSError("key-of-the-engine"),
        DockerUnavailable("dockerd does not answer"),
    ],
)
def test_the_error_of_an_unfit_release_does_not_have_its_key(
    node: Node, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(*_given: object) -> acceptance.Result:
        raise failure

    monkeypatch.setattr(environment, "read", lambda *_given: {"VLLM_API_KEY": "key-of-the-engine"})
    monkeypatch.setattr(proof.acceptance, "run", fail)
    with pytest.raises(proof.Unfit) as refused:
        proof.accept(node.paths, "main", 3, [])
    assert "key-of-the-engine" not in str(refused.value)


def test_the_given_golden_prompts_are_probed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def run(_target: object, golden: object, _timeout: float) -> acceptance.Result:
        tried.append(golden)
        return acceptance.Result([], SPEED)

    monkeypatch.setattr(proof.acceptance, "run", run)
    proof.accept(node.paths, "main", 3, [{"prompt": "1+1", "expect": "2"}])
    assert tried == [[acceptance.Golden("1+1", "2")]]


LOOKS = {
    seconds: throughput.Counters(
        "tiny-a", at=seconds, started=1.0, tokens=40 * seconds, seconds=seconds, work=60 * seconds
    )
    for seconds in (10.0, 20.0)
}


@pytest.mark.parametrize(
    ("before", "bound", "failed", "words"),
    [
        (
            True,
            0.25,
            True,
            "main is too slow: under its clients' load, a request gets 4.0 tokens/s (400 counted, 10.0 requests",
        ),
        (True, 0.1, False, "under its clients' load, a request gets 4.0 tokens/s"),
        (False, 0.25, False, "is not judged: its counters are not known for the time before"),
        (True, 0.0, False, ""),
    ],
)
def test_an_engine_that_is_slow_for_its_clients_fails_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool, bound: float, failed: bool, words: str
) -> None:
    shown = {"vllm@main.service": {"ActiveState": "active", "InvocationID": "1"}}
    monkeypatch.setattr(proof.systemd, "show", lambda units, properties: shown)
    # The counters of the new process: each token takes ten times as long as before.
    looks = [
        throughput.Counters("tiny-a", at, 2.0, tokens=40 * at, seconds=10 * at, work=60 * at) for at in (70.0, 80.0)
    ]
    monkeypatch.setattr(throughput, "read", lambda paths, name: looks.pop(0))
    counted = [asdict(look) for look in LOOKS.values()] if before else [{}, asdict(LOOKS[20.0])]

    def watched() -> str:
        return proof.watch(Paths(tmp_path), "main", 0, before=counted, speed_bound=bound)

    if failed:
        with pytest.raises(proof.Unfit) as unfit:
            watched()
        assert words in str(unfit.value)
        assert str(unfit.value).endswith("; update_watch_speed_bound allows no less than 0.25 times the speed before")
    else:
        speed = watched()
        assert words in speed and (words or not speed)


class Watched:
    """An engine while it is watched: each look advances the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, paths: Paths) -> None:
        self.paths = paths
        self.now = 0.0
        self.unit = {"ActiveState": "active", "InvocationID": "a"}
        self.at: dict[float, dict[str, str]] = {}
        monkeypatch.setattr(proof.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, self.unit))
        monkeypatch.setattr(throughput, "read", lambda *_given: None)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.unit = {**self.unit, **self.at.get(self.now, {})}

    def verdict(self, verdict: str, checked: datetime) -> None:
        time = format_time(checked)
        files.write_json(self.paths.probe("main"), ProbeState("main", verdict, time, time, 1, "because").to_json())

    def watch(self, seconds: float = 5, **more: Any) -> str:
        return proof.watch(self.paths, "main", seconds, sleep=self.sleep, **more)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(proof.wait, "last_words", lambda _paths, _name, retrying: f"retrying: {retrying}")
    return Watched(monkeypatch, Paths(tmp_path))


def test_an_engine_that_keeps_serving_passes_the_watch(watched: Watched) -> None:
    assert watched.watch() == "" and watched.now == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ActiveState": "failed"}, "retrying: False"),
        ({"ActiveState": "activating"}, "retrying: True"),
        # The engine has died, and systemd has started it again between two looks.
        ({"InvocationID": "b"}, "retrying: False"),
    ],
)
def test_an_engine_that_stops_serving_fails_the_watch(watched: Watched, change: dict[str, str], words: str) -> None:
    watched.at[3.0] = change
    with pytest.raises(proof.Unfit, match=f"main stopped serving while it was watched.*\n.*{words}"):
        watched.watch()
    assert watched.now == 3


def test_the_agents_verdict_counts_unless_it_is_from_before_the_watch(watched: Watched) -> None:
    now = datetime.now(UTC)
    watched.verdict(health.HUNG, now - timedelta(hours=1))
    watched.watch()
    watched.verdict(health.HEALTHY, now + timedelta(hours=1))
    watched.watch()
    watched.verdict(health.HUNG, now + timedelta(hours=1))
    with pytest.raises(proof.Unfit, match="main was found hung while it was watched: because"):
        watched.watch()


def test_counters_that_cannot_be_read_are_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [LOOKS[10.0], None]
    monkeypatch.setattr(throughput, "read", lambda *_given: looks.pop(0))
    assert throughput.Counters(**proof.counted(Paths(tmp_path), "main")) == LOOKS[10.0]
    assert proof.counted(Paths(tmp_path), "main") == {}
