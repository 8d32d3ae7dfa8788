# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gateway_facts on a gateway whose HAProxy does not run, or has prepared answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import answers, observation
from ansible_collections.baremetal.inference.plugins.modules import gateway_facts

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "haproxy.cfg").write_text("http-request lua.hold 90\n")
    monkeypatch.setattr(observation, "CONFIG", tmp_path / "haproxy.cfg")
    monkeypatch.setattr(observation, "CONTROL_SOCKET", str(tmp_path / "admin.sock"))
    return tmp_path


def test_the_result_silent_has_the_reason_if_haproxy_does_not_answer(
    gateway: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    said = run_module(gateway_facts, name="main", host="a", seconds=0)
    assert said["silent"].startswith("HAProxy does not answer: ") and not said["known"]
    assert said["hold_seconds"] == 90
    monkeypatch.setattr(observation, "observe", lambda *_given: observation.Observation())
    said = run_module(gateway_facts, name="main", host="a", seconds=0)
    assert said["silent"] == ""


def test_the_result_has_the_observation(gateway: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    seen = observation.Observation(known=True, bridge_known=True, up=["a"])
    monkeypatch.setattr(observation, "observe", lambda *_given: seen)
    said = run_module(gateway_facts, name="main", host="a", gateway="gw", seconds=0)
    assert (said["gateway"], said["name"], said["up"], said["changed"]) == ("gw", "main", ["a"], False)
    assert said["known"] and said["bridge_known"]


def test_a_gateway_without_its_files_is_an_error(gateway: Path, run_module: RunModule) -> None:
    (gateway / "haproxy.cfg").unlink()
    said = run_module(gateway_facts, name="main", seconds=0)
    assert said["failed"] and "haproxy.cfg" in said["msg"] and "baremetal.inference.site" in said["msg"]


def test_a_set_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    monkeypatch.setattr(answers, "CONTROL_SOCKET", "/nowhere/admin.sock")
    found = answers.Answers(["main"], [], [], {})
    monkeypatch.setattr(answers, "ask_all", lambda names, deadline: found if names == ["main"] else pytest.fail())
    said = run_module(gateway_facts, gather_subset=["answers"], names=["main"])
    assert (said["changed"], said["answered"], said["unanswered"]) == (False, ["main"], {})
    assert "known" not in said
    found = answers.Answers([], [], [], {"main": "503"})
    said = run_module(gateway_facts, gather_subset=["answers"], names=["main"])
    assert said["failed"] and "- main: 503" in said["msg"] and said["unanswered"] == {"main": "503"}


def test_each_subset_requires_its_names(run_module: RunModule) -> None:
    assert "name is missing" in run_module(gateway_facts)["msg"]
    assert "names is missing" in run_module(gateway_facts, gather_subset=["answers"])["msg"]
