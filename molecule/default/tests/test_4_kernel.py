# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings and limits that a container can have. The scenario vm tests the other settings.

Mistakes in kernel settings are in test_4_system.py, since one task of the role finds the mistakes of both parts.
"""

from __future__ import annotations

import pytest
from node import Node, changes


def test_a_new_service_has_the_limits(node: Node) -> None:
    """A container cannot raise its own hard limits, so the test compares the soft limit with the hard limit."""
    manager = node.run("systemctl show --property=DefaultLimitNOFILE --property=DefaultLimitMEMLOCK")
    assert set(manager.split()) == {"DefaultLimitNOFILE=1048576", "DefaultLimitMEMLOCK=infinity"}
    # The last messages of a crashed kernel stay. By Debian's own file, they would be deleted after 14 days.
    tmpfiles = node.run("systemd-tmpfiles --cat-config | grep /var/lib/systemd/pstore")
    assert tmpfiles.split()[-1] == "-"
    limits = node.run("systemd-run --quiet --wait --pipe prlimit --output=HARD,SOFT --noheadings --nofile").split()
    assert limits[0] == limits[1], "the soft limit is below the hard limit"


@pytest.mark.full
def test_limits_that_this_node_cannot_have_are_named_at_once(deb12: Node) -> None:
    """With more files than fs.nr_open, every login would silently keep its old limits."""
    output = deb12.baseline(
        "kernel", check=False, common_limits_nofile=2000000, common_limits_memlock="64 GB", common_watchdog_seconds=1
    )
    words = " ".join(output.split())
    assert "nofile is 2000000: it must be 1024 to 1048576 (fs.nr_open of this kernel)" in words
    assert "memlock is '64 GB': it must be infinity" in words
    assert "watchdog_seconds is 1: it must be 10 or more" in words
    assert changes(output) == 0


@pytest.mark.full
def test_a_limit_that_another_file_overrules_is_an_error_that_names_it(deb13: Node) -> None:
    later = "/etc/systemd/system.conf.d/99-site.conf"
    deb13.run(f"printf '[Manager]\nDefaultLimitNOFILE=4096\n' > {later}; systemctl daemon-reload")
    try:
        output = deb13.baseline("kernel", check=False)
        assert "DefaultLimitNOFILE: declared 1048576, systemd has 4096" in " ".join(output.split())
    finally:
        deb13.run(f"rm {later}; systemctl daemon-reload")


# Unit tests show the files: modules/test_system_settings.py. In CI, the scenario `vm` shows the settings of a machine.
@pytest.mark.full
def test_limits_that_are_switched_off_are_removed(deb12: Node) -> None:
    try:
        deb12.baseline("kernel", common_limits_enabled=False)
        assert "infinity" not in deb12.run("systemctl show --property=DefaultLimitMEMLOCK")
        assert "inference" not in deb12.run("ls /etc/security/limits.d /etc/systemd/user.conf.d")
        # The role enables a unit that was disabled by hand.
        deb12.run("systemctl disable systemd-pstore.service")
    finally:
        deb12.baseline("kernel")
    assert deb12.run("systemctl is-enabled systemd-pstore.service") == "enabled"
    assert "infinity" in deb12.run("systemctl show --property=DefaultLimitMEMLOCK")
