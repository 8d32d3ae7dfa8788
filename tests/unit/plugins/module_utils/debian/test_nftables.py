# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declared rules of the firewall, as nftables rules. The scenarios load them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_session import Login

DECLARED: dict[str, Any] = {
    "name": "site",
    "allow": [],
    "ssh_sources": [],
    "ssh_ports": [],
    "trusted_interfaces": [],
    "log": True,
    "seconds": 60,
}


def lines(allow: list[dict[str, Any]]) -> list[str]:
    """The rules of a part, without its header."""
    rules, _base = nftables.parse({**DECLARED, "allow": allow})
    return (nftables.part_text("site", rules) or "").splitlines()[1:]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"port": 80}, ['meta l4proto tcp ct original proto-dst 80 accept comment "x"']),
        (
            {"port": "5005-5010", "protocol": "udp"},
            ['meta l4proto udp ct original proto-dst 5005-5010 accept comment "x"'],
        ),
        (
            {"port": [81, "80", "90-92", 91]},
            [
                'meta l4proto tcp ct original proto-dst 80-81 accept comment "x"',
                'meta l4proto tcp ct original proto-dst 90-92 accept comment "x"',
            ],
        ),
        (
            {"port": 80, "sources": ["192.0.2.1", ["198.51.100.0/25", "198.51.100.128/25"], "2001:db8::/32"]},
            [
                'ip saddr { 192.0.2.1, 198.51.100.0/24 } meta l4proto tcp ct original proto-dst 80 accept comment "x"',
                'ip6 saddr { 2001:db8::/32 } meta l4proto tcp ct original proto-dst 80 accept comment "x"',
            ],
        ),
    ],
)
def test_each_entry_becomes_rules_of_nftables(entry: dict[str, Any], expected: list[str]) -> None:
    assert lines([{"name": "x", **entry}]) == expected


def test_a_group_without_hosts_does_not_open_ssh_to_the_world() -> None:
    assert nftables.parse({**DECLARED, "ssh_sources": []})[1].ssh_sources.matches() == [""]
    with pytest.raises(InputError, match="ssh_sources: has only empty lists"):
        nftables.parse({**DECLARED, "ssh_sources": [[], []]})


CLIENT = Login("root", "203.0.113.9", 22)


@pytest.mark.parametrize(
    "declared",
    [
        {"ssh_sources": []},
        {"ssh_sources": ["203.0.113.0/24"]},
        {"allow": [{"name": "site", "port": "20-30", "sources": ["203.0.113.9"]}]},
        {"trusted_interfaces": ["wg0"]},
    ],
)
def test_rules_that_let_the_operators_client_in_are_accepted(declared: dict[str, Any]) -> None:
    nftables.parse({**DECLARED, "ssh_sources": ["192.0.2.0/24"], **declared}, CLIENT)


@pytest.mark.parametrize(
    "allowed",
    [
        {"port": 8000},
        {"port": 22, "protocol": "udp"},
        {"port": 22, "sources": ["192.0.2.0/24", "2001:db8::/64"]},
    ],
)
def test_rules_that_shut_out_the_operators_client_are_refused(allowed: dict[str, Any]) -> None:
    """The error also has all other mistakes."""
    declared = {"ssh_sources": ["192.0.2.0/24"], "allow": [{"name": "other", **allowed}], "seconds": 1}
    with pytest.raises(InputError) as caught:
        nftables.parse({**DECLARED, **declared}, CLIENT)
    assert "common_firewall_ssh_sources: does not have 203.0.113.9" in str(caught.value)
    assert "confirm_seconds" in str(caught.value)


def test_a_rule_for_vrrp_has_no_port() -> None:
    rule = {"name": "floating address", "protocol": "vrrp", "sources": ["192.0.2.2"]}
    assert lines([rule]) == ['ip saddr { 192.0.2.2 } meta l4proto 112 accept comment "floating address"']
    with pytest.raises(InputError, match="is not allowed in a rule for vrrp"):
        nftables.parse({**DECLARED, "allow": [{**rule, "port": 80}]})


def test_a_part_that_opens_nothing_has_no_file() -> None:
    assert nftables.part_text("site", []) is None


def test_all_mistakes_are_found_at_once() -> None:
    allow = [
        {"name": "a", "port": 70000},
        {"name": "a", "port": "90-80"},
        {"name": "c", "port": 80, "protocol": "sctp", "source": ["192.0.2.1"]},
        {"name": "d", "port": 80, "sources": ["gateway.example.com"]},
        {"name": "e", "port": 80, "sources": ["192.0.2.1/24"]},
        {"name": "f", "port": 80, "sources": []},
        {"name": 'g"; accept', "port": 80},
        "ssh",
        {"name": "i", "port": 80, "protocol": ["tcp", "udp"]},
    ]
    with pytest.raises(InputError) as caught:
        nftables.parse({**DECLARED, "name": "../x", "allow": allow, "trusted_interfaces": ["a b"]})
    text = str(caught.value)
    for words in (
        "70000",
        "90-80",
        "used more than once",
        "sctp",
        "source: is not known",
        "host_addresses",
        "use 192.0.2.0/24 or 192.0.2.1",
        "entry 6 (f)",
        "entry 7",
        "entry 8",
        "entry 9 (i): protocol: ['tcp', 'udp']: must be one of",
        "../x",
        "a b",
    ):
        assert words in text, words


def test_the_table_replaces_itself_and_nothing_else() -> None:
    _rules, base = nftables.parse({**DECLARED, "ssh_ports": [22, 2222], "ssh_sources": ["192.0.2.0/24"]})
    text = nftables.main_text(base)
    assert "flush" not in text
    assert text.count("delete table") == text.count("delete table inet inference\n") == 1
    assert "ip saddr { 192.0.2.0/24 } tcp dport { 22, 2222 } accept" in text
    assert "policy drop" in text
