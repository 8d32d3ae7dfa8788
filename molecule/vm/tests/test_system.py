# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clock, host name and journal of the machine, before and after a reboot."""

from __future__ import annotations

from node import wait_for
from virtual import Machine


def sources(machine: Machine) -> list[tuple[str, str]]:
    """State and name of chronyd's time source."""
    lines = machine.run("chronyc -c -N sources -a").splitlines()
    return [(line.split(",")[1], line.split(",")[2]) for line in lines]


def test_the_clock_follows_the_declared_server_alone(machine: Machine) -> None:
    assert sources(machine) == [("*", "127.0.0.1")]
    machine.run("chronyc waitsync 1 0.5")
    # The kernel reports that chronyd sets this clock.
    assert machine.run("timedatectl show --value --property=NTPSynchronized") == "yes"
    assert machine.run("dpkg-query -W -f '${db:Status-Status}' systemd-timesyncd", check=False) != "installed"


def test_the_host_name_leads_to_an_address_that_other_hosts_reach(machine: Machine) -> None:
    address = machine.run('ip -json -4 route get 192.0.2.1 | grep -o \'"prefsrc":"[^"]*\' | cut -d\'"\' -f4')
    assert machine.run("getent ahostsv4 $(hostname) | cut -d' ' -f1 | sort -u") == address


def test_the_journal_has_the_previous_boot(rebooted: Machine) -> None:
    assert len(rebooted.run("journalctl --list-boots --no-pager -o cat --quiet").splitlines()) > 1


def test_the_clock_is_right_after_a_reboot(rebooted: Machine) -> None:
    wait_for("the clock is synchronised", lambda: ("*", "127.0.0.1") in sources(rebooted), 60)
    assert len(sources(rebooted)) == 1
