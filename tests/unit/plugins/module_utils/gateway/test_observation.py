# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observation of a gateway, with a fake of HAProxy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import observation as module

STAT = """# pxname,svname,status
set_main,a,UP
set_main,b,DRAIN (agent)
set_main,main_bridge.a,DOWN
set_main,BACKEND,UP
"""


class Haproxy:
    """A HAProxy that refuses the first `away` connections, and a clock that only waiting moves."""

    def __init__(self) -> None:
        self.away = 0
        self.pauses: list[float] = []

    def ask(self, _path: Path) -> Callable[[str], str]:
        def send(command: str) -> str:
            assert command == "show stat"
            self.away -= 1
            if self.away >= 0:
                raise ConnectionRefusedError("refused")
            return STAT

        return send


@pytest.fixture
def haproxy(monkeypatch: pytest.MonkeyPatch) -> Haproxy:
    found = Haproxy()
    monkeypatch.setattr(module.runtime, "ask", found.ask)
    monkeypatch.setattr(module.time, "sleep", found.pauses.append)
    monkeypatch.setattr(module.time, "monotonic", lambda: sum(found.pauses))
    return found


def test_an_instance_is_observed_once(haproxy: Haproxy) -> None:
    assert module.observe("main", "a", 0) == module.Observation(known=True, bridge_known=True, up=["a"])
    assert module.observe("main", "c", 0) == module.Observation(known=False, bridge_known=False, up=["a"])
    assert haproxy.pauses == []


def test_a_haproxy_that_is_starting_is_waited_for(haproxy: Haproxy) -> None:
    haproxy.away = 2
    assert module.observe("main", "a", 5).known and len(haproxy.pauses) == 2


def test_a_haproxy_that_does_not_answer_in_time_is_silent(haproxy: Haproxy) -> None:
    haproxy.away = 100
    seen = module.observe("main", "a", 1)
    assert seen == module.Observation(silent="HAProxy does not answer: refused") and sum(haproxy.pauses) >= 1


def test_the_hold_is_read_from_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONFIG", tmp_path / "haproxy.cfg")
    (tmp_path / "haproxy.cfg").write_text("global\n")
    assert module.hold_seconds() == 0
    # A comment of another program may have any bytes.
    (tmp_path / "haproxy.cfg").write_bytes(b"# \xfc\n  http-request lua.hold 90\n")
    assert module.hold_seconds() == 90
