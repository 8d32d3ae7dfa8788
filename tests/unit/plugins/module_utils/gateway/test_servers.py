# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a gateway is done with an engine, from what HAProxy says."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import servers

COLUMNS = "pxname,svname,qcur,scur,stot,status,weight,econ,eresp,hrsp_5xx"


def stat(*rows: str) -> str:
    return "\n".join([f"# {COLUMNS}", *rows])


UP = stat(
    "api,FRONTEND,,3,90,OPEN,,,,",
    "set_main,n1,0,2,40,UP,100,1,2,3",
    "set_main,n2,0,0,40,DOWN 1/2,100,0,0,0",
    "set_main,BACKEND,0,2,80,UP,200,1,2,3",
    "set_side,n1,0,9,40,UP,100,0,0,0",
    "model_tiny,main.n1,1,0,5,UP,100,0,0,1",
    "model_tiny,side.n1,0,4,5,UP,100,0,0,0",
)
IDLE = servers.Processes(age=3600.0, old=())

# As HAProxy 2.6's master answers.
SHOW_PROC = """\
#<PID>          <type>          <reloads>       <uptime>        <version>
1207            master          2               0d00h05m02s     2.6.12-1+deb12u2
# workers
1456            worker          0               1d01h01m07s     2.6.12-1+deb12u2
# old workers
1301            worker          1               0d00h02m11s     2.6.12-1+deb12u2
1209            worker          2               0d00h05m02s     2.6.12-1+deb12u2
# programs
"""


def test_the_servers_of_an_instance() -> None:
    own, borrowed = servers.servers(UP, "n1", "main")
    assert (own.backend, own.name, own.sessions, own.requests, own.failures) == ("set_main", "n1", 2, 40, 6)
    assert (borrowed.backend, borrowed.name, borrowed.queued) == ("model_tiny", "main.n1", 1)
    assert servers.up_hosts(UP, "main") == ["n1"]
    assert servers.servers(UP, "n3", "main") == []
    assert servers.set_requests(UP, "main") == 80
    assert servers.set_requests(UP, "mai") == 0


def test_processes() -> None:
    found = servers.processes(SHOW_PROC)
    assert found == servers.Processes(age=86400 + 3600 + 67, old=(1301, 1209))


def drained(row: str) -> list[servers.Server]:
    return servers.servers(stat(row), "n1", "main")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("set_main,n1,0,0,0,UP,100,0,0,0", "still sends requests"),
        ("set_main,n1,0,0,0,UP 1/3,100,0,0,0", "still sends requests"),
        ("set_main,n1,0,1,0,DRAIN,100,0,0,0", "1 requests are in flight"),
        ("set_main,n1,2,1,0,DRAIN,100,0,0,0", "3 requests are in flight"),
        ("set_main,n1,0,0,0,DRAIN,100,0,0,0", ""),
        ("set_main,n1,0,0,0,DOWN,100,0,0,0", ""),
    ],
)
def test_drained(row: str, why: str) -> None:
    assert why in servers.not_drained(drained(row), IDLE, [])
    assert bool(servers.not_drained(drained(row), IDLE, [])) is bool(why)


def test_what_a_reload_has_left_counts() -> None:
    idle = drained("set_main,n1,0,0,0,DRAIN,100,0,0,0")
    before = drained("set_main,n1,0,5,0,UP,100,0,0,0")
    workers = servers.Processes(age=60.0, old=(7,))
    assert "5 requests are in flight in a process" in servers.not_drained(idle, workers, before)
    assert servers.not_drained(idle, workers, drained("set_main,n1,0,0,0,UP,100,0,0,0")) == ""
    # It still may get a request on a connection that a client keeps.
    assert "10 s after it" in servers.not_drained(idle, servers.Processes(age=3.0, old=(7,)), [])
    assert servers.not_drained(idle, servers.Processes(age=3.0, old=()), []) == ""


def test_serving() -> None:
    assert servers.not_serving([]) == "the gateway has no such server: run site.yml"
    assert servers.not_serving(drained("set_main,n1,0,0,0,DOWN 1/2,100,0,0,0")) == "set_main/n1 is DOWN 1/2"
    assert "25 % of its share" in servers.not_serving(drained("set_main,n1,0,0,0,UP,25,0,0,0"))
    assert servers.not_serving(drained("set_main,n1,0,7,0,UP,100,0,0,0")) == ""
