# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall: allowed connections, and a role that never locks the operator out."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from node import PROJECT, Node, changes, playbook, wait_for
from scan import scan

IPV6 = {"deb12": "2001:db8::12", "deb13": "2001:db8::13"}
CUTS_SSH = {"common_firewall_ssh_ports": [2222], "common_firewall_confirm_seconds": 20}


def reaches(node: Node, port: int, seconds: float = 2) -> bool:
    """Whether a new connection from this machine succeeds."""
    try:
        socket.create_connection((node.address, port), timeout=seconds).close()
    except OSError:
        return False
    return True


def receives(source: Node, target: Node, address: str, port: int) -> bool:
    """Whether a datagram from one node reaches a UDP port at an address of another node."""
    listen = (
        f"import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', {port}));"
        " s.settimeout(3); print(s.recv(9).decode())"
    )
    argv = target.argv("python3", "-c", listen)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener:
        wait_for("the listener runs", lambda: target.run(f"ss -Hunl sport = {port}"), 10)
        send = f"sendto(b'hello', ('{address}', {port}))"
        source.run(f'python3 -c "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).{send}"')
        words, _ = listener.communicate()
    return words.strip() == b"hello"


def foreign_tables(node: Node) -> list[str]:
    """All tables of the firewall but ours, without counters."""
    tables = [line for line in node.run("nft list tables").splitlines() if line != "table inet inference"]
    return [node.run(f"nft --stateless list {table}") for table in tables]


@pytest.fixture
def listeners(deb13: Node) -> Iterator[list[int]]:
    """Ports of deb13 with a listener on every address."""
    ports = [7001, 7002, 7003]
    for port in ports:
        deb13.run(f"systemd-run --quiet --collect --unit=listen-{port} python3 -m http.server --bind :: {port}")
        wait_for(f"a listener at port {port}", partial(deb13.run, f"ss -Htnl sport = {port}"), 10)
    yield ports
    deb13.run("systemctl stop 'listen-*'")


@pytest.fixture
def back_to_normal(deb13: Node) -> Callable[[], None]:
    """A check that the node accepts connections again, with the rules of the inventory."""

    def check() -> None:
        wait_for("SSH works again", lambda: reaches(deb13, 22), 40)
        assert "192.0.2.1" not in deb13.run("nft list table inet inference; cat /etc/nftables.conf")
        assert changes(deb13.baseline("firewall")) == 0

    return check


@pytest.fixture
def neighbours(deb12: Node, deb13: Node) -> Iterator[None]:
    """Give both nodes IPv6 addresses at which they reach each other."""
    for node, address in ((deb12, IPV6["deb12"]), (deb13, IPV6["deb13"])):
        _switch_ipv6(node, on=True)
        node.run(f"ip address add {address}/64 dev eth0 nodad")
    yield
    for node in (deb12, deb13):
        _switch_ipv6(node, on=False)


def _switch_ipv6(node: Node, on: bool) -> None:
    """Switch IPv6 on or off from outside: a container cannot change this setting itself."""
    pid = subprocess.check_output(
        ["docker", "inspect", "--format", "{{.State.Pid}}", node.container], text=True
    ).strip()
    command = ["nsenter", "--target", pid, "--net", "sysctl", "-qw", f"net.ipv6.conf.eth0.disable_ipv6={int(not on)}"]
    subprocess.run(command, check=True)


@pytest.mark.usefixtures("neighbours")
def test_only_declared_ports_are_open(deb12: Node, deb13: Node, listeners: list[int]) -> None:
    """At first, a scan of all ports finds only SSH. Then the declared ports are open, too, and then only SSH again."""
    every = range(1, 65536)
    six = IPV6["deb13"]
    assert scan(deb12, deb13.address, every) == scan(deb12, six, every) == [22]
    assert not receives(deb12, deb13, six, 7005)
    allow = [
        {"name": "one", "port": "7001-7002", "sources": [deb12.address]},
        {"name": "other", "port": 7003, "sources": ["192.0.2.0/24", "2001:db8::/64"]},
        {"name": "datagrams", "port": 7005, "protocol": "udp"},
    ]
    deb13.baseline("firewall", firewall_allow=allow)
    assert scan(deb12, deb13.address, [22, *listeners]) == [22, 7001, 7002]
    assert scan(deb12, six, [22, *listeners]) == [22, 7003]
    assert receives(deb12, deb13, six, 7005)
    assert not reaches(deb13, 7001), "the firewall accepts every address, not only deb12"
    deb13.baseline("firewall")
    assert scan(deb12, deb13.address, [22, *listeners]) == scan(deb12, six, [22, *listeners]) == [22]


@pytest.mark.full
def test_the_engines_are_open_to_the_gateways_of_the_inventory(deb12: Node, deb13: Node, tmp_path: Path) -> None:
    inventory = {
        "gateway": {"hosts": {"gw": {"ansible_host": deb12.address}}},
        "inference": {"hosts": {deb13.name: {"inference_address": deb13.address}}},
    }
    (tmp_path / "site.json").write_text(json.dumps(inventory))
    # Agent and engine use these ports on the loopback interface. Here, servers use them at the node's address.
    ports = [5004, 5005]
    for port in ports:
        serve = f"python3 -m http.server --bind {deb13.address} {port}"
        deb13.run(f"systemd-run --quiet --collect --unit=listen-{port} {serve}")
    try:
        for port in ports:
            wait_for("the listener runs", partial(deb13.run, f"ss -Htnl src {deb13.address}:{port}"), 10)
        assert scan(deb12, deb13.address, ports) == []
        deb13.baseline("firewall", "--inventory", str(tmp_path / "site.json"))
        assert scan(deb12, deb13.address, ports) == ports
        assert not reaches(deb13, 5005), "the firewall accepts an address that is no gateway"
        assert not reaches(deb13, 5004), "the firewall accepts an address that is no gateway"
    finally:
        deb13.run("systemctl stop 'listen-500[45]'")
        deb13.baseline("firewall")


@pytest.mark.full
def test_a_separate_part_of_the_rules_changes_no_other_part(deb12: Node, deb13: Node, listeners: list[int]) -> None:
    deb13.baseline("firewall", firewall_allow=[{"name": "one", "port": 7001}])
    play = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "part.yml"
    role = {"name": "baremetal.inference.common", "tasks_from": "firewall"}
    task = {"ansible.builtin.include_role": role}
    play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "become": True, "tasks": [task]}]))
    part: dict[str, Any] = {"common_firewall_name": "other", "common_firewall_allow": [{"name": "two", "port": 7002}]}
    assert changes(playbook(deb13.name, name=str(play), **part)) > 0
    assert changes(playbook(deb13.name, name=str(play), **part)) == 0
    assert scan(deb12, deb13.address, listeners) == [7001, 7002]
    playbook(deb13.name, name=str(play), **{**part, "common_firewall_allow": []})
    assert scan(deb12, deb13.address, listeners) == [7001]
    deb13.baseline("firewall")


def test_sources_without_the_operator_are_refused_before_any_change(deb13: Node) -> None:
    output = deb13.baseline("firewall", check=False, common_firewall_ssh_sources=["192.0.2.1"])
    assert "from which this run has logged in by SSH" in " ".join(output.split())
    assert changes(output) == 0


def test_rules_that_cut_ssh_are_taken_back(deb13: Node, back_to_normal: Callable[[], None]) -> None:
    output = " ".join(deb13.baseline("firewall", check=False, **CUTS_SSH).split())
    assert "the old firewall is back" in output
    assert "common_firewall_ssh_ports" in output
    back_to_normal()


@pytest.mark.full
def test_rules_that_cut_ssh_are_taken_back_without_a_controller(
    deb13: Node, back_to_normal: Callable[[], None], tmp_path: Path
) -> None:
    """The controller dies during the trial: the node restores the old rules by itself."""
    helper = "import json, sys; sys.path.insert(0, sys.argv[1]); from node import Node;"
    helper += " Node(sys.argv[2]).baseline('firewall', check=False, **json.loads(sys.argv[3]))"
    shared = str(PROJECT / "molecule/shared")
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(
            [sys.executable, "-c", helper, shared, deb13.name, json.dumps(CUTS_SSH)],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    wait_for("the rules are on trial", lambda: "2222" in deb13.run("nft list table inet inference"), 60)
    assert not reaches(deb13, 22)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    back_to_normal()


def test_dockers_chains_survive_restarts_of_nftables(node: Node) -> None:
    before = foreign_tables(node)
    assert any("DOCKER" in table for table in before)
    for verb in ("reload", "restart", "stop", "start"):
        node.run(f"systemctl {verb} nftables.service")
        assert foreign_tables(node) == before, verb
    assert node.run("systemctl is-enabled nftables.service") == "enabled"
    assert changes(node.baseline("firewall")) == 0


@pytest.mark.full
def test_a_published_port_is_closed_until_it_is_declared(deb12: Node, deb13: Node) -> None:
    """The firewall also filters published ports of containers, which Docker opens before all rules of the node.

    The test runs only on Debian 12: in a container, Debian 13's Docker cannot give its containers an interface."""
    image = deb12.run("docker images --quiet | head -1")
    serve = "--entrypoint python3 " + image + " -m http.server 80"
    deb12.run(f"docker run --detach --rm --name published --publish 7010:80 {serve}")
    try:
        wait_for("the listener runs", lambda: "200" in deb12.run("curl -sI http://127.0.0.1:7010 || true"), 30)
        assert scan(deb13, deb12.address, [7010]) == []
        deb12.baseline("firewall", firewall_allow=[{"name": "published", "port": 7010}])
        assert scan(deb13, deb12.address, [7010]) == [7010]
        deb12.baseline("firewall")
        assert scan(deb13, deb12.address, [7010]) == []
    finally:
        deb12.run("docker stop --time 1 published")


# Opens a connection, as a program in an engine's container, and prints the result. Port 0: to the program's own socket.
OPEN = """
import socket, sys
kind, address, port = sys.argv[1:]
with socket.create_server(('127.0.0.1', 0)) as own:
    port = int(port) or own.getsockname()[1]
    with socket.socket(type=getattr(socket, kind)) as client:
        client.settimeout(5)
        try:
            client.connect((address, port))
            client.send(b'x')
            print('open')
        except OSError as error:
            print(type(error).__name__)
"""


def opens(node: Node, address: str, port: int, kind: str = "SOCK_STREAM") -> str:
    """The result of a connection that a process in the engine's container opens. Port 0: to the process itself."""
    return node.run(f"docker exec vllm-main python3 -c {shlex.quote(OPEN)} {kind} {address} {port}")


def doctor_status(node: Node) -> str:
    """The doctor's status of the rules about connections of engines."""
    (found,) = json.loads(node.run("inferctl doctor engine-firewall --json", check=False))["checks"]
    return str(found["status"])


def test_an_engine_answers_and_opens_only_what_is_declared(deb12: Node, deb13: Node, api_key: str) -> None:
    """The engine's container opens the connections, with the engine's user. deb13 need not have an engine."""
    deb12.wait_ready()
    assert deb12.run("docker exec vllm-main id -u") == deb12.run("id -u inference") != "0"
    services = [("127.0.0.1", 22), (deb12.address, 22), ("127.0.0.1", 5004), ("127.0.0.1", 5005), (deb13.address, 22)]

    def refused() -> bool:
        found = [opens(deb12, *service) for service in services]
        return found == ["ConnectionRefusedError"] * len(services)

    assert refused()
    assert (
        opens(deb12, "127.0.0.1", 53, "SOCK_DGRAM")
        == opens(deb12, deb13.address, 53, "SOCK_DGRAM")
        == "PermissionError"
    )
    assert opens(deb12, "127.0.0.1", 0) == "open"
    assert deb12.ask(key=api_key) == "I am tiny-a."
    assert "vllm:" in deb12.run("curl --silent --fail http://127.0.0.1:5005/metrics")
    assert doctor_status(deb12) == "ok"

    allow = [{"name": "neighbour", "port": 22, "destinations": [deb13.address]}]
    deb12.baseline("firewall", firewall_engine_allow=allow)
    assert (opens(deb12, deb13.address, 22), opens(deb12, "127.0.0.1", 22)) == ("open", "ConnectionRefusedError")
    deb12.baseline("firewall")
    assert refused()

    # Without the rules, all services are open: so the rules refused the connections.
    deb12.run("nft flush chain inet inference output")
    assert [opens(deb12, *service) for service in services] == ["open"] * len(services)
    assert doctor_status(deb12) == "fail"
    deb12.run("systemctl reload nftables.service")
    assert refused() and doctor_status(deb12) == "ok"
    assert changes(deb12.baseline("firewall")) == 0


def test_every_mistake_is_named_before_anything_changes(deb13: Node) -> None:
    allow = [
        {"name": "one", "port": 70000},
        {"name": "two", "port": "80-22"},
        {"name": "three", "port": 80, "sources": ["gateway.example.com"]},
    ]
    engine_allow = [{"name": "hub", "port": 443, "destinations": ["huggingface.co"]}]
    extra: dict[str, Any] = {"firewall_engine_allow": engine_allow, "common_firewall_confirm_seconds": 5}
    output = deb13.baseline("firewall", check=False, firewall_allow=allow, **extra)
    for word in ("huggingface.co", "confirm_seconds: is 5,", "70000", "80-22", "gateway.example.com", "host_addresses"):
        assert word in output
    assert changes(output) == 0
