# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""chrony's files, and the output of chronyc."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.debian import chrony

# chrony.conf of Debian 12's package, without comments.
DEBIAN = """\
confdir /etc/chrony/conf.d
pool 2.debian.pool.ntp.org iburst
sourcedir /run/chrony-dhcp
sourcedir /etc/chrony/sources.d
keyfile /etc/chrony/chrony.keys
makestep 1 3
"""


def test_debians_sources_are_disabled_and_enabled_again() -> None:
    quiet = chrony.main_text(DEBIAN, True)
    live = [line for line in quiet.splitlines() if not line.startswith("#")]
    assert live == [
        "confdir /etc/chrony/conf.d",
        "sourcedir /etc/chrony/sources.d",
        "keyfile /etc/chrony/chrony.keys",
        "makestep 1 3",
    ]
    assert chrony.main_text(quiet, True) == quiet
    assert chrony.main_text(quiet, False) == DEBIAN == chrony.main_text(DEBIAN, False)


def test_sources_have_iburst_unless_they_have_options() -> None:
    lines = chrony.source_lines(["ntp1", "ntp2 iburst nts"], ["pool.example.com"])
    assert lines == ["server ntp1 iburst", "server ntp2 iburst nts", "pool pool.example.com iburst"]


def test_each_mistake_in_the_variable_clock_is_found() -> None:
    found = chrony.mistakes(["ntp1", "", "-x"], ["a\nallow"], ["allow 10/8", "server ntp1", "a\nb"])
    assert [problem.where for problem in found] == [
        "clock.servers[1]",
        "clock.servers[2]",
        "clock.pools[0]",
        "clock.config[1]",
        "clock.config[2]",
    ]


def test_sources_are_parsed_from_the_output_of_chronyc() -> None:
    """Recorded from chrony 4.3."""
    answer = "^,*,ntp1,8,6,7,1,0.000000001,0.000001535,0.000003691\n^,?,ntp2,0,6,0,4294967295,0.0,0.0,0.0\n"
    sources = chrony.parse_sources(answer)
    assert [str(source) for source in sources] == ["ntp1: chosen, offset +0.000000 s", "ntp2: no answer"]
    assert chrony.parse_sources("506 Cannot talk to daemon") == []
