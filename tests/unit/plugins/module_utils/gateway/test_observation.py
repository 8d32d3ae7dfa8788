# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a gateway is observed until an instance is drained, or serves, by a HAProxy that says what the test wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import observation as module

STAT = """# pxname,svname,status,scur,qcur,weight,stot,econ,eresp,hrsp_5xx
set_main,a,{status},0,0,{weight},7,1,0,1
set_main,b,UP,0,0,100,3,0,0,0
set_main,main_bridge.a,DOWN,0,0,100,0,0,0,0
set_main,BACKEND,UP,0,0,200,10,0,0,0
"""

PROC = """#<PID> <type> <reloads> <uptime> <version>
1 master 0 0d01h00m00s 2.6
# workers
20 worker 0 0d01h00m00s 2.6
# old workers
{old}
# programs
"""

OLD_STAT = "# pxname,svname,status,scur,qcur,weight,stot,econ,eresp,hrsp_5xx\nset_main,a,UP,2,1,100,7,0,0,0\n"


class Haproxy:
    """Both sockets of a HAProxy, and the time that passes by waiting."""

    def __init__(self) -> None:
        self.status, self.weight, self.old = "UP", 100, ""
        self.pauses: list[float] = []
        self.asked: list[str] = []
        self.then: Callable[[], None] = lambda: None

    def ask(self, path: Path) -> Callable[[str], str]:
        def send(command: str) -> str:
            self.asked.append(command)
            if command == "show proc":
                return PROC.format(old=self.old)
            if command.startswith("@!"):
                return OLD_STAT
            if self.status == "away":
                raise ConnectionRefusedError("refused")
            return STAT.format(status=self.status, weight=self.weight)

        return send

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.then()


@pytest.fixture
def haproxy(monkeypatch: pytest.MonkeyPatch) -> Haproxy:
    found = Haproxy()
    monkeypatch.setattr(module.runtime, "ask", found.ask)
    monkeypatch.setattr(module.time, "sleep", found.sleep)
    monkeypatch.setattr(module.time, "monotonic", lambda: sum(found.pauses))
    return found


def test_one_observation_is_enough_where_nothing_is_waited_for(haproxy: Haproxy) -> None:
    reached, seen = module.wait("main", "a", "", 0)
    assert reached and haproxy.pauses == [] and haproxy.asked == ["show stat"]
    assert (seen.up, seen.set_requests, seen.bridge, seen.missing) == (["a", "b"], 10, True, "")
    assert [(server.requests, server.failures) for server in seen.now] == [(7, 2)]


def test_a_drain_is_believed_when_seen_twice(haproxy: Haproxy) -> None:
    haproxy.status = "DRAIN"
    assert module.wait("main", "a", module.DRAINED, 20)[0]
    assert haproxy.pauses == [module.BETWEEN_OBSERVATIONS]


def test_a_request_on_its_way_begins_the_count_anew(haproxy: Haproxy) -> None:
    haproxy.status = "DRAIN"
    states = iter(["UP", "DRAIN", "DRAIN"])

    def change() -> None:
        haproxy.status = next(states)

    haproxy.then = change
    assert module.wait("main", "a", module.DRAINED, 20)[0]
    pauses = [module.BETWEEN_OBSERVATIONS, module.POLL_SECONDS, module.BETWEEN_OBSERVATIONS]
    assert haproxy.pauses == pauses


def test_requests_of_an_old_process_are_in_flight(haproxy: Haproxy) -> None:
    haproxy.status, haproxy.old = "DRAIN", "19 worker 1 0d02h00m00s 2.6"
    reached, seen = module.wait("main", "a", module.DRAINED, 0)
    assert not reached and seen.missing.startswith("3 requests are in flight in a process")
    assert "@!19 show stat" in haproxy.asked


def test_serving_is_the_full_share(haproxy: Haproxy) -> None:
    haproxy.weight = 40
    reached, seen = module.wait("main", "a", module.SERVING, 3)
    assert not reached and "40 % of its share" in seen.missing and sum(haproxy.pauses) >= 3
    haproxy.weight = 100
    assert module.wait("main", "a", module.SERVING, 0)[0]


def test_a_haproxy_that_comes_back_is_heard(haproxy: Haproxy) -> None:
    haproxy.status = "away"
    reached, seen = module.wait("main", "a", "", 0)
    assert not reached and seen.silent == seen.missing == "HAProxy does not answer: refused"

    def back() -> None:
        haproxy.status = "UP"

    haproxy.then = back
    reached, seen = module.wait("main", "a", module.SERVING, 5)
    assert reached and seen.silent == ""


def test_a_gateway_is_asked_less_often_the_longer_it_takes() -> None:
    pauses = [module.pause(waited) for waited in (0.0, 10.0, 600.0)]
    assert pauses == [module.POLL_SECONDS, 1.0, module.SELDOM_SECONDS]


def test_keys_and_the_hold_are_read_from_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONFIG", tmp_path / "haproxy.cfg")
    monkeypatch.setattr(module, "ENGINE_KEYS", tmp_path / "engines.map")
    (tmp_path / "haproxy.cfg").write_text("global\n")
    assert module.hold_seconds() == 0 and not module.sends_key("main")
    (tmp_path / "haproxy.cfg").write_text("  http-request lua.hold 90\n")
    (tmp_path / "engines.map").write_text("set_main-2 x\n")
    assert module.hold_seconds() == 90 and not module.sends_key("main")
    (tmp_path / "engines.map").write_text("set_main x\n")
    assert module.sends_key("main")
