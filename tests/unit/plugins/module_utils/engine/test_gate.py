# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: the commands to nft, and the reading of nft's answers. Scenarios test the gate on nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate


class Nft:
    """A fake of nft that keeps the set of closed ports."""

    def __init__(self) -> None:
        self.there = False
        self.ports: set[int] = set()
        self.loaded: list[str] = []
        self.ignores_elements = False
        self.failure: Outcome | None = None

    def run(self, command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        if self.failure:
            return self.failure
        if "tables" in command:
            tables = [{"table": {"family": "inet", "name": gate.TABLE}}] if self.there else []
            return Outcome(0, json.dumps({"nftables": [{"metainfo": {}}, *tables]}))
        if "set" in command:
            found: dict[str, object] = {"name": "closed"}
            if self.ports:
                found["elem"] = sorted(self.ports)
            return Outcome(0, json.dumps({"nftables": [{"metainfo": {}}, {"set": found}]}))
        self.loaded.append(stdin)
        self.there = "delete table" not in stdin
        for verb, port in re.findall(r"^(add|delete) element inet \w+ closed \{ (\d+) \}$", stdin, re.MULTILINE):
            if not self.ignores_elements:
                (self.ports.add if verb == "add" else self.ports.discard)(int(port))
        return Outcome(0)


@pytest.fixture
def nft(monkeypatch: pytest.MonkeyPatch) -> Nft:
    found = Nft()
    monkeypatch.setattr(commands, "run", found.run)
    monkeypatch.setattr(gate, "local_clients", lambda: {998})
    return found


def test_a_gate_closes_and_opens(nft: Nft) -> None:
    assert gate.closed() == set()
    gate.close(5005)
    gate.close(5006)
    assert gate.closed() == {5005, 5006}
    gate.open_(5005)
    gate.open_(5005)
    assert gate.closed() == {5006}


def test_only_new_connections_of_clients_are_refused(nft: Nft) -> None:
    """Probes of the node and a gateway on the node both use the loopback interface. Their user tells them apart."""
    gate.close(5005)
    rules = [line for line in nft.loaded[0].splitlines() if line.startswith("add rule")]
    assert len(rules) == 2 and all("== syn reject with tcp reset" in rule for rule in rules)
    assert 'input iif != "lo" tcp dport @closed' in rules[0]
    assert 'output oif "lo" meta skuid 998 tcp dport @closed' in rules[1]


def test_a_port_that_is_not_closed_after_all_is_an_error(nft: Nft) -> None:
    nft.ignores_elements = True
    with pytest.raises(gate.GateError, match="5005"):
        gate.close(5005)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Outcome(None, failure="not_installed", message="nft is not installed"), "nft is not installed"),
        (Outcome(1, stderr="Error: Operation not permitted\n"), "Operation not permitted"),
    ],
)
def test_a_refusal_of_nft_is_reported(nft: Nft, failure: Outcome, words: str) -> None:
    nft.failure = failure
    for call in (lambda: gate.close(5005), lambda: gate.open_(5005), gate.closed):
        with pytest.raises(gate.GateError, match=words) as caught:
            call()
        assert isinstance(caught.value, gate.NotInstalled) is (failure.failure == "not_installed")


def test_the_removal_of_the_table_opens_every_gate(nft: Nft) -> None:
    gate.remove()
    assert nft.loaded == [], "there is no table"
    gate.close(5005)
    gate.remove()
    assert nft.loaded[-1] == f"delete table inet {gate.TABLE}\n" and gate.closed() == set()


def test_a_node_without_nftables_has_no_gate_to_remove(nft: Nft) -> None:
    nft.failure = Outcome(None, failure="not_installed", message="nft is not installed")
    gate.remove()


def test_a_table_that_nft_cannot_list_is_an_error(nft: Nft) -> None:
    gate.close(5005)
    nft.failure = Outcome(None, failure="timeout", message="nft gave no answer within 20 s")
    with pytest.raises(gate.GateError, match="nft gave no answer within 20 s"):
        gate.remove()
