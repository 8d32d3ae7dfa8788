# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts clock, host names and logs of the role common, on a node."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import on_deb12
from node import Node, changed_tasks, changes, wait_for

PART = "system"

# A service that logs while journald restarts.
COUNTER = "i=0; while sleep 0.05; do i=$((i+1)); echo count $i; done"

# An NTP server with the right time. Source of the layout: RFC 5905, section 7.3.
NTP_SERVER = """
import socket, struct, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 1123))
while True:
    query, client = server.recvfrom(512)
    now = int((time.time() + 2208988800) * 2**32)
    head = struct.pack(">BBbbIII", 0b00100100, 2, 4, -20, 0, 0, 0x7F000001)
    server.sendto(head + struct.pack(">Q", now) + query[40:48] + struct.pack(">QQ", now, now), client)
"""


def journal_limit(node: Node) -> tuple[str, int]:
    """The directory of the journal and its maximum size in bytes, as the running journald reports them."""
    pid = node.run("systemctl show --value --property=MainPID systemd-journald.service")
    query = f"journalctl --output=json MESSAGE_ID=ec387f577b844b8fa948f33cad9a75e6 _PID={pid}"
    entry = json.loads(node.run(query).splitlines()[-1])
    return entry["JOURNAL_PATH"], int(entry["MAX_USE"])


@on_deb12
def test_damaged_names_are_repaired_and_a_new_limit_is_set(node: Node, tmp_path: Path) -> None:
    """Check mode predicts the repairs; the run makes them without a lost line; a second run changes nothing."""
    node.baseline("system")
    hostname = node.run("hostname")
    lines = [line for line in node.run("cat /etc/hosts").splitlines() if hostname not in line]
    broken = "\n".join([f"127.0.1.1 {hostname}.example.com {hostname}", *lines]) + "\n"
    node.run(f"printf %s {shlex.quote(broken)} > /etc/hosts; systemctl disable --now logrotate.timer")
    assert node.run(f"getent ahostsv4 {hostname} | cut -d' ' -f1 | sort -u") == "127.0.1.1"
    wanted: dict[str, Any] = {
        "common_journald_max_use": "640M",
        "common_hosts": [{"address": "192.0.2.20", "names": ["storage.example.com", "storage"]}],
    }

    predicted, _ = changed_tasks(node, tmp_path, "--check", part=PART, **wanted)
    assert len(predicted) == 1
    assert "192.0.2.20" not in node.run("cat /etc/hosts")

    counter = f"counter-{time.time_ns()}"
    node.run(f"systemd-run --quiet --unit={counter} sh -c {shlex.quote(COUNTER)}")
    done, _ = changed_tasks(node, tmp_path, part=PART, **wanted)
    assert done == predicted
    node.run(f"sleep 1; systemctl stop {counter}.service; journalctl --sync")
    lines = node.run(f"journalctl -u {counter} -o cat | grep '^count '").splitlines()
    counted = [int(line.split()[1]) for line in lines]
    assert counted == list(range(1, len(counted) + 1)), "lines of a running service were lost"

    path, limit = journal_limit(node)
    assert path.startswith("/var/log/journal/")
    assert abs(limit - 640 * 2**20) < 2**20
    node.run("test $(stat -c %a /etc/systemd/journald.conf.d/60-inference.conf) = 644")

    assert node.run(f"getent ahostsv4 {hostname} | cut -d' ' -f1 | sort -u") == node.address
    assert node.run("hostname --fqdn") == f"{hostname}.example.com"
    assert node.run("getent hosts storage").split()[0] == "192.0.2.20"
    assert node.run("systemctl is-enabled logrotate.timer; systemctl is-active logrotate.timer") == "enabled\nactive"
    assert node.run("getent ahostsv4 localhost | cut -d' ' -f1 | sort -u") == "127.0.0.1"
    assert changes(node.baseline("system", **wanted)) == 0


def test_logs_that_are_files_have_a_limit(node: Node) -> None:
    words = node.run("logrotate --debug /etc/logrotate.conf 2>&1")
    assert "error" not in words.lower()
    assert words.count("rotating pattern") == words.count(f"log files >= {200 * 2**20} are rotated earlier") > 0
    assert "OnCalendar=*-*-* *:00:00" in node.run("systemctl show --property=TimersCalendar logrotate.timer")
    assert node.run("systemctl is-enabled logrotate.timer") == "enabled"


def test_all_mistakes_are_reported_before_any_change(deb12: Node) -> None:
    """One run reports all mistakes in the kernel's settings, clock, names and logs, in the check before the first
    change."""
    other = "/etc/systemd/journald.conf.d/99-other.conf"
    deb12.run(f"mkdir -p $(dirname {other}); printf '[Journal]\\nStorage=none\\n' > {other}")
    state = "cat /etc/hosts /etc/systemd/journald.conf.d/60-inference.conf"
    state += "; ls -lR --time-style=full-iso /etc/sysctl.d /etc/tmpfiles.d || true"
    before = deb12.run(state)
    try:
        output = deb12.baseline(
            PART,
            check=False,
            common_timezone="Mars/Olympus",
            common_hosts=[
                {"address": "192.0.2.300", "names": ["a"]},
                {"address": "192.0.2.1", "names": ["under_score"]},
            ],
            common_logrotate_max_size="much",
            common_journald_max_retention="3months",
            common_sysctl_enabled=True,
            common_sysctl={"vm.swapiness": 5, "kernel.no_such_thing_at_all": 1},
            common_kernel_cmdline=["iommu=pt"],
        )
    finally:
        deb12.run(f"rm {other}")
    words = " ".join(output.split())
    for word in (
        *("Mars/Olympus", "192.0.2.300", "under_score", "much", other),
        "vm.swapiness: this kernel has no /proc/sys/vm/swapiness. Did you mean vm.swappiness?",
        *("kernel.no_such_thing_at_all", "A container shares its host's kernel"),
        "this machine does not boot with GRUB",
    ):
        assert word in words, word
    assert changes(output) == 0
    assert deb12.run(state) == before


@pytest.fixture
def timeless(deb13: Node) -> Iterator[Node]:
    """A node whose chronyd measures the time and does not set the clock, which belongs to the host."""
    node = deb13
    drop_in = "[Unit]\\nConditionCapability=\\n[Service]\\nExecStart=\\nExecStart=!/usr/sbin/chronyd -F 1 -x\\n"
    node.run("mkdir -p /etc/systemd/system/chrony.service.d")
    node.run(f"printf '{drop_in}' > /etc/systemd/system/chrony.service.d/test.conf; systemctl daemon-reload")
    yield node
    node.run("systemctl stop ntp-server.service; systemctl disable --now chrony.service", check=False)
    node.run("rm -r /etc/systemd/system/chrony.service.d; systemctl daemon-reload")


@pytest.mark.full
def test_the_clock_follows_the_declared_server_alone(timeless: Node, tmp_path: Path) -> None:
    node = timeless
    node.run(f"systemd-run --quiet --unit=ntp-server python3 -c {shlex.quote(NTP_SERVER)}")
    wait_for("an NTP server", lambda: node.run("ss -Hunl sport = 1123"), 10)
    wanted: dict[str, Any] = {"common_time_enabled": True, "common_ntp_servers": ["127.0.0.1 port 1123 iburst"]}
    predicted, _ = changed_tasks(node, tmp_path, "--check", part=PART, **wanted)
    done, _ = changed_tasks(node, tmp_path, part=PART, **wanted)
    assert done <= predicted and done
    assert [line.split(",")[2] for line in node.run("chronyc -c -N sources -a").splitlines()] == ["127.0.0.1"]
    assert changes(node.baseline("system", **wanted)) == 0

    # The error of chronyd about an unknown directive. The run changes nothing.
    refused = node.baseline("system", check=False, **wanted, common_ntp_config=["makestop 1 3"])
    assert "chronyd refuses it" in refused and changes(refused) == 0

    # A server that does not answer.
    late = node.baseline(
        "system",
        check=False,
        common_time_enabled=True,
        common_ntp_servers=["127.0.0.1 port 1124"],
        common_time_sync_seconds=5,
    )
    assert "not synchronised after 5 s" in late and "127.0.0.1: no answer" in late

    # Without declared servers, Debian's own servers are back.
    node.baseline("system", common_time_enabled=True, common_time_sync_seconds=0)
    assert "debian.pool.ntp.org" in node.run("chronyc -c -N sources -a")
