# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates of packages, logs, certificates, reboots: what maintenance finds out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_packages import Installed
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import logs, report, updates

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = 86400

SIMULATED = """\
Reading package lists...
The following packages will be upgraded:
  curl libcurl4 tzdata
Remv old-thing [1.0]
Inst libcurl4 [7.88.1-10] (7.88.1-11 Debian:12.9/stable, Debian-Security:12/stable-security [amd64]) []
Inst curl:amd64 [7.88.1-10] (7.88.1-11 Debian-Security:12/stable-security [amd64])
Inst tzdata [2024a-0] (2024b-0 Debian:12.9/stable [all])
Inst linux-image-6.1.0-51-amd64 (6.1.150-1 Debian-Security:12/stable-security [amd64])
Inst plain [1] (2 localhost [amd64])
Inst nowhere [1] (2)
Conf curl (7.88.1-11 Debian-Security:12/stable-security [amd64])
"""


def test_a_simulation_is_read() -> None:
    found = {one.name: one for one in updates.parse(SIMULATED)}
    assert list(found) == ["libcurl4", "curl", "tzdata", "linux-image-6.1.0-51-amd64", "plain", "nowhere"]
    assert found["libcurl4"].labels == ("Debian", "Debian-Security")
    assert str(found["curl"]) == "curl 7.88.1-10 -> 7.88.1-11"
    assert str(found["linux-image-6.1.0-51-amd64"]) == "linux-image-6.1.0-51-amd64 (new) -> 6.1.150-1"
    assert found["nowhere"].labels == () and found["plain"].labels == ("localhost",)
    assert updates.removals(SIMULATED) == ["old-thing"]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("security", ["libcurl4", "curl"]),
        ("all", ["libcurl4", "curl", "tzdata", "plain", "nowhere"]),
        ("none", []),
    ],
)
def test_which_updates_come(mode: str, names: list[str]) -> None:
    found = updates.wanted(updates.parse(SIMULATED), mode, ["Debian-Security"])
    assert [one.name for one in found] == names


def test_nothing_goes_and_nothing_that_is_held_moves() -> None:
    planned = updates.parse(SIMULATED)
    assert updates.objections(planned, ["x"], ["curl"]) == [
        "it would remove x",
        "it would change curl, which is on hold",
    ]
    assert updates.objections(planned, [], ["docker.io"]) == []


def test_what_may_move_and_what_is_half_there() -> None:
    installed = {
        "docker.io": Installed("1", held=True),
        "containerd": Installed("1"),
        "linux-image-6.1": Installed("1", held=True),
        "broken": Installed("1", whole=False),
    }
    assert updates.released(installed, ["docker.io", "containerd"]) == ["docker.io"]
    assert updates.released(installed, ["linux-image-*"]) == ["linux-image-6.1"]
    assert updates.half(installed) == ["broken"]


def journal(name: str, mib: int, days: float, archived: bool = True) -> logs.Journal:
    return logs.Journal(name, mib << 20, days * DAY, archived)


FILES = [journal("new", 10, 0, archived=False), journal("b", 20, 5), journal("a", 30, 40)]


@pytest.mark.parametrize(
    ("mib", "days", "going"),
    [
        (0, 0, []),
        (0, 30, ["a"]),
        (0, 3, ["a", "b"]),
        (35, 0, ["a"]),
        (29, 0, ["a", "b"]),
        (1, 0, ["a", "b"]),
        (60, 40, []),
    ],
)
def test_what_a_vacuum_takes(mib: int, days: int, going: list[str]) -> None:
    assert [one.path for one in logs.vacuum(FILES, mib << 20, days * DAY)] == going


def test_what_a_vacuum_says() -> None:
    said = (
        "Deleted archived journal /var/log/journal/x/system@1.journal (8.0M).\n"
        "Vacuuming done, freed 8.0M of archived journals from /var/log/journal/x.\n"
        "Vacuuming done, freed 0B of archived journals from /run/log/journal.\n"
        "Vacuuming done, freed 1.5G of archived journals from /var/log/journal.\n"
    )
    assert logs.freed(said) == (8 << 20) + (3 << 29)
    assert logs.freed("") == 0


def test_what_logrotate_did() -> None:
    before = 'logrotate state -- version 2\n"/var/log/a.log" 2026-11-1-0:0:0\n"/var/log/b.log" 2026-11-1-0:0:0\n'
    after = before.replace('b.log" 2026-11-1', 'b.log" 2026-11-21') + '"/var/log/c.log" 2026-11-21-0:0:0\n'
    assert logs.rotated(before, after) == ["/var/log/b.log"]
    assert logs.rotated("", after) == []


def test_what_logrotate_would_do() -> None:
    said = (
        "considering log /var/log/a.log\n  Now: 2026\n  log does not need rotating (log has been rotated already)\n"
        "considering log /var/log/b.log\n  log needs rotating\n"
    )
    assert logs.due(said) == ["/var/log/b.log"]


@pytest.mark.parametrize(
    ("end", "days", "status", "words"),
    [
        ("Nov 22 12:00:00 2027 GMT", 366, "ok", "has 366 days left, until 2027-11-22"),
        ("Dec  1 12:00:00 2026 GMT", 10, "warn", "has 10 days left"),
        ("Nov 25 12:00:00 2026 GMT", 4, "fail", "has 4 days left"),
        ("Nov 11 12:00:00 2026 GMT", -10, "fail", "ended 10 days ago"),
    ],
)
def test_how_long_a_certificate_lasts(end: str, days: int, status: str, words: str) -> None:
    found = report.certificate("/tls.pem", f"notAfter={end}\n", NOW, 30, 7)
    assert (found.days, found.status) == (days, status)
    assert found.words.startswith(words)


@pytest.mark.parametrize("said", ["", "unable to load certificate", "notAfter=soon"])
def test_what_is_no_certificate(said: str) -> None:
    found = report.certificate("/tls.pem", said, NOW, 30, 7)
    assert (found.days, found.status) == (None, "fail")
    assert "maintenance_certificates" in found.words


@pytest.mark.parametrize(
    ("running", "installed", "pending"),
    [
        ("6.1.0-9-amd64", ["6.1.0-9-amd64", "6.1.0-10-amd64"], "6.1.0-10-amd64"),
        ("6.1.0-10-amd64", ["6.1.0-9-amd64", "6.1.0-10-amd64"], ""),
        ("6.18.5", ["6.1.0-9-amd64"], ""),
        ("6.18.5", [], ""),
    ],
)
def test_a_kernel_that_waits(running: str, installed: list[str], pending: str) -> None:
    assert report.pending_kernel(running, installed) == pending


def test_why_a_reboot_is_due() -> None:
    assert report.reboot_reasons(False, ["stale"], "") == []
    assert report.reboot_reasons(True, ["libc6", "dbus", "libc6", ""], "") == ["libc6, dbus"]
    assert report.reboot_reasons(True, [], "6.1.0-10-amd64") == [
        "nobody says for what",
        "kernel 6.1.0-10-amd64 is installed and does not run",
    ]


def test_how_full_a_disk_is() -> None:
    assert str(report.Usage("/", 100 << 30, 25 << 30)) == "/: 75 % used, 25.0 of 100.0 GiB free"
    assert report.is_real("ext4") and report.is_real("nfs4") and not report.is_real("tmpfs")
