# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role runs again with other variables."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from gateway import CHAT, KEY, Gateway, body
from node import PROJECT, wait_for

HOSTS = yaml.safe_load((PROJECT / "molecule/gateway/hosts.yml").read_text())["inference"]["vars"]
KEYS: list[dict[str, Any]] = HOSTS["gateway_keys"]


def test_keys_change_in_the_running_process(gateway: Gateway) -> None:
    """No connection is dropped, and a removed key is refused at once."""
    before = gateway.pid
    new = [key for key in KEYS if key["name"] != "narrow"] + [{"name": "new", "key": "a-new-key-0192837465"}]
    report = gateway.load(clients=3).during(lambda: gateway.node.site(gateway_keys=new))
    assert not report.failures and report.succeeded, report
    assert gateway.pid == before
    assert gateway.ask(key="a-new-key-0192837465").status == 200
    assert gateway.ask(key="narrow-key-90ab4417").status == 401
    # The files on disk have the new keys, too: the next start reads them.
    gateway.node.run("systemctl reload haproxy")
    assert gateway.ask(key="a-new-key-0192837465").status == 200


def test_a_setting_changes_by_a_reload(gateway: Gateway) -> None:
    """The settings are body size, paths and the clients' networks."""
    before = gateway.pid
    # The role's own request at its end passes, although gateway_paths does not list the path of that request.
    changes: dict[str, Any] = {"gateway_body_mib": 4, "gateway_paths": [CHAT]}
    report = gateway.load(clients=3).during(lambda: gateway.node.site(**changes))
    assert not report.failures and report.succeeded, report
    assert gateway.pid != before
    # No client of this test is in this network.
    gateway.node.site(gateway_clients=["192.0.2.0/24"], gateway_verify_seconds=20)
    answer = gateway.ask()
    assert (answer.status, answer.error["code"]) == (403, "address_not_allowed")
    gateway.node.site()
    assert gateway.ask().status == 200


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (
            ["gateway_keys[0] (short)", "16 to 512", "did you mean 'main'", "gateway_port"],
            {
                "gateway_keys": [{"name": "short", "key": "too-short-7", "models": ["mian"]}],
                "gateway_port": 70000,
            },
        ),
        (
            ["none.pem': there is no such file on the gateway", "none.key': there is no such file", "gateway_port"],
            {
                "gateway_tls_certificate": "/etc/ssl/none.pem",
                "gateway_tls_key": "/etc/ssl/none.key",
                "gateway_port": 70000,
            },
        ),
        (
            ["gateway_acme_email", "gateway_tls_names: is empty", "contradicts gateway_tls_certificate"],
            {"gateway_tls": "acme", "gateway_tls_certificate": "/etc/ssl/none.pem"},
        ),
    ],
)
def test_a_mistake_changes_nothing(gateway: Gateway, words: list[str], extra: dict[str, Any]) -> None:
    before = gateway.node.run("cat /etc/haproxy/* 2>/dev/null | sha256sum")
    output = gateway.node.site(check=False, **extra)
    for word in words:
        assert word in output, output[-3000:]
    assert "too-short-7" not in output
    assert gateway.node.run("cat /etc/haproxy/* 2>/dev/null | sha256sum") == before
    assert gateway.ask(key=KEY).status == 200


def test_a_changed_port_of_an_engine_takes_effect(gateway: Gateway) -> None:
    """HAProxy's saved states name the old port. The engine at the new port does not serve the model."""
    replicas: list[dict[str, Any]] = HOSTS["gateway_replicas"]
    moved = [replica | ({"port": 5005} if replica["name"] == "lone" else {}) for replica in replicas]
    gateway.engine("127.0.0.2", agent="drain")
    gateway.wait_state("two", "DRAIN")
    try:
        gateway.node.site(gateway_replicas=moved, gateway_verify_seconds=0)
        assert gateway.ask(data=body("lone")).status == 404
        assert gateway.states()["two"].startswith("DRAIN")
    finally:
        gateway.node.site(gateway_verify_seconds=0)
    assert gateway.ask(data=body("lone")).status == 200


def test_users_of_a_drained_engine_move_and_come_back(gateway: Gateway) -> None:
    """A user with many requests gets both engines."""

    def engine(user: str, tokens: int = 2, request_id: str = "") -> str:
        answer = gateway.ask(data=body(user=user, tokens=tokens), request_id=request_id)
        assert answer.status == 200, answer
        return str(answer.json["choices"][0]["message"]["content"]).split()[-1].rstrip(".")

    users = [f"user-{number}" for number in range(16)]
    replicas: list[dict[str, Any]] = HOSTS["gateway_replicas"]
    routed = [each | ({"routing": {"sources": ["user"]}} if each["name"] == "main" else {}) for each in replicas]
    report = gateway.load(clients=3).during(lambda: gateway.node.site(gateway_replicas=routed))
    assert not report.failures and report.succeeded, report
    try:
        first = {user: engine(user) for user in users}
        assert {user: engine(user) for user in users} == first and len(set(first.values())) == 2

        gateway.engine("127.0.0.1", agent="drain")
        gateway.wait_state("one", "DRAIN")
        assert {engine(user) for user in users} == {"127.0.0.2"}
        # A new process reads the states from a file, and asks the agents.
        gateway.node.run("systemctl reload haproxy")
        assert {engine(user) for user in users} == {"127.0.0.2"}
        gateway.engine("127.0.0.1", agent="up ready")
        gateway.wait_state("one", "UP")
        assert {user: engine(user) for user in users} == first

        wait_for("both engines have their full share", lambda: set(gateway.weights().values()) == {"100"}, 60)
        before = gateway.view().json["affinity"]
        with ThreadPoolExecutor(8) as pool:
            found = Counter(pool.map(lambda _number: engine(users[0], tokens=300), range(8)))
        # Each engine takes four requests at a time.
        assert found == {"127.0.0.1": 4, "127.0.0.2": 4}
        wait_for(
            "the view has the new counts", lambda: gateway.view().json["affinity"]["other"] >= before["other"] + 4, 10
        )
        assert gateway.view().json["affinity"]["keyless"] == before["keyless"]

        assert engine(users[0], request_id="affinity-1") == first[users[0]]
        line = gateway.log("affinity-1")
        assert line["preferred"] == line["engine"] == ("one" if first[users[0]] == "127.0.0.1" else "two")
    finally:
        gateway.node.site()


@pytest.mark.full
@pytest.mark.parametrize("affinity", ["session", "prefix"])
def test_related_requests_get_the_same_engine(gateway: Gateway, affinity: str) -> None:
    """Requests are related by their session or by the beginning of their prompt."""

    def engine(number: int, session: str) -> str:
        """The engine that answers a request. All requests of one number have the same first two messages."""
        messages = [{"role": "user", "content": f"{words} {number}"} for words in ("You are", "Hello,")]
        messages.append({"role": "user", "content": f"asked as {session} for the {time.monotonic_ns()}th time"})
        answer = gateway.ask(data=body(messages=messages), session=session)
        assert answer.status == 200, answer
        return str(answer.json["choices"][0]["message"]["content"])

    gateway.node.site(gateway_affinity=affinity)
    try:
        found = [
            [engine(number, f"s{number}" if affinity == "session" else "") for _turn in range(3)]
            for number in range(12)
        ]
        assert all(len(set(engines)) == 1 for engines in found), found
        assert len({engines[0] for engines in found}) == 2, found
        # The session counts before the beginning of the prompt.
        (name,) = {engine(number, "one for all") for number in range(6)}
        # Another engine answers for a drained one.
        address = name.split()[-1].rstrip(".")
        gateway.engine(address, agent="drain")
        gateway.wait_state("one" if address == "127.0.0.1" else "two", "DRAIN")
        assert engine(0, "one for all") != name
    finally:
        gateway.node.site()


def test_a_configuration_that_this_collection_did_not_write_stays(gateway: Gateway) -> None:
    gateway.node.run("cp /etc/haproxy/haproxy.cfg /root/ours.cfg; echo '# mine' > /etc/haproxy/haproxy.cfg")
    try:
        assert "This collection did not write /etc/haproxy/haproxy.cfg" in gateway.node.site(check=False)
        assert gateway.node.run("cat /etc/haproxy/haproxy.cfg") == "# mine"
    finally:
        gateway.node.run("cp /root/ours.cfg /etc/haproxy/haproxy.cfg")
