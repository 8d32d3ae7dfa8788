# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall on the machine's own kernel, before and after a reboot."""

from __future__ import annotations

from virtual import Machine


def is_closed(machine: Machine) -> None:
    assert machine.run("systemctl is-enabled nftables.service") == "enabled"
    rules = machine.run("nft --stateless list table inet inference")
    assert "policy drop" in rules
    assert "ip saddr 10.0.2.0/24 meta l4proto tcp ct original proto-dst 5005 accept" in rules


def test_the_firewall_drops_undeclared_connections(machine: Machine) -> None:
    is_closed(machine)


def test_the_firewall_drops_undeclared_connections_after_a_reboot(rebooted: Machine) -> None:
    is_closed(rebooted)
