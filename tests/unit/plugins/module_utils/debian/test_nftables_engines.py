# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for connections that engines open. The scenario `default` tries the rules from inside an engine."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables, nftables_engines

from .test_nftables import DECLARED


def lines(*allow: dict[str, Any], log: bool = False) -> list[str]:
    """The rules of a part, without its header and without the users."""
    _rules, base = nftables.parse({**DECLARED, "engine_allow": list(allow)})
    text = nftables_engines.text("site", {2001, 2000}, base.engine_allow, log=log)
    found = (text or "").splitlines()[1:]
    assert all(line.startswith("meta skuid { 2000, 2001 } ") for line in found)
    return [line.removeprefix("meta skuid { 2000, 2001 } ") for line in found]


FIRST = [
    "tcp flags & (fin | syn | rst | ack) != syn accept",
    'oifname "lo" tcp dport 32768-65535 accept comment "processes of engines"',
]
LAST = ["meta l4proto tcp reject with tcp reset", "reject with icmpx admin-prohibited"]


def test_without_entries_an_engine_only_answers_and_connects_its_own_processes() -> None:
    assert lines() == [*FIRST, *LAST]
    (logged,) = set(lines(log=True)) - set(lines())
    assert 'log prefix "inference-firewall-engine: "' in logged and "limit rate" in logged


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"port": 443}, ['oifname != "lo" tcp dport 443 accept comment "x"']),
        (
            {"port": [53, "80-90"], "protocol": "udp", "destinations": ["192.0.2.1", "2001:db8::/64"]},
            [
                'ip daddr { 192.0.2.1 } udp dport 53 accept comment "x"',
                'ip daddr { 192.0.2.1 } udp dport 80-90 accept comment "x"',
                'ip6 daddr { 2001:db8::/64 } udp dport 53 accept comment "x"',
                'ip6 daddr { 2001:db8::/64 } udp dport 80-90 accept comment "x"',
            ],
        ),
        # An entry with destinations also allows connections within the node.
        ({"port": 1, "destinations": ["0.0.0.0/0"]}, ['meta nfproto ipv4 tcp dport 1 accept comment "x"']),
    ],
)
def test_each_entry_becomes_rules_of_nftables(entry: dict[str, Any], expected: list[str]) -> None:
    assert lines({"name": "x", **entry}) == [*FIRST, *expected, *LAST]


def test_a_part_without_users_has_no_file() -> None:
    assert nftables_engines.text("site", set(), [], log=True) is None


def test_all_mistakes_are_found_at_once() -> None:
    wrong: list[dict[str, Any]] = [
        {"name": "a", "port": 443, "sources": ["192.0.2.1"]},
        {"name": "a", "port": 70000},
        {"name": "c", "protocol": "vrrp"},
        {"name": "d", "port": 443, "destinations": ["huggingface.co"]},
        {"name": "e", "port": 443, "destinations": []},
        {"name": "f"},
    ]
    with pytest.raises(InputError) as caught:
        lines(*wrong)
    for words in (
        *("engine_allow, entry 1 (a)", "sources: is not known", "used more than once", "70000"),
        *("must be one of tcp, udp", "port to which engines connect", "huggingface.co", "every other machine"),
    ):
        assert words in str(caught.value), words


def test_the_parts_of_engines_are_in_the_chain_output() -> None:
    _rules, base = nftables.parse(DECLARED)
    parts = {"50-a.nft": "# inbound\n", "engines/50-a.nft": nftables_engines.text("a", {7}, [], log=False) or ""}
    complete = nftables.complete(nftables.main_text(base), parts)
    assert "include" not in complete
    services, output = complete.index("chain services"), complete.index("chain output")
    assert services < complete.index("# inbound") < output < complete.index("meta skuid { 7 }")
    assert "ct state established,related accept" in complete[output:].partition("meta skuid")[0]


def test_the_users_of_engines_are_read_back() -> None:
    """From our file, and from the listings of nft 1.0.6 and 1.1.3."""
    assert nftables_engines.users(nftables_engines.text("a", {7, 8}, [], log=False) or "") == {7, 8}
    assert nftables_engines.users("\t\tmeta skuid 2000 reject with icmpx admin-prohibited\n") == {2000}
    assert nftables_engines.users("\t\tmeta skuid { 2000, 2001 } tcp dport 5 accept\n") == set()


@pytest.mark.parametrize(
    ("port_range", "first"),
    [("32768\t60999\n", 32768), ("1024\t65535\n", 1024), ("40000\t60999\n", 32768), ("", 32768)],
)
def test_a_node_with_a_lower_port_range_opens_these_ports_to_engines(port_range: str, first: int) -> None:
    """Otherwise, at some starts, the processes of an engine could not connect to each other."""
    assert nftables_engines.first_own_port(port_range) == first
    text = nftables_engines.text("site", {7}, [], log=False, first_port=first)
    assert f'oifname "lo" tcp dport {first}-65535 accept' in str(text)
