# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of certificates, disks and reboots."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import report

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("end", "days", "status", "words"),
    [
        ("Nov 22 12:00:00 2027 GMT", 366, "ok", "has 366 days left, until 2027-11-22"),
        ("Dec  1 12:00:00 2026 GMT", 10, "warn", "has 10 days left, until 2026-12-01: renew the certificate"),
        ("Nov 25 12:00:00 2026 GMT", 4, "fail", "has 4 days left, until 2026-11-25: renew the certificate"),
        ("Nov 11 12:00:00 2026 GMT", -10, "fail", "ended 10 days ago: renew the certificate"),
    ],
)
def test_the_days_left_decide_the_status_of_a_certificate(end: str, days: int, status: str, words: str) -> None:
    found = report.certificate("/tls.pem", f"notAfter={end}\n", NOW, 30, 7)
    assert (found.days, found.status) == (days, status)
    assert found.words.startswith(words)


@pytest.mark.parametrize("said", ["", "unable to load certificate", "notAfter=soon"])
def test_an_output_of_openssl_without_the_end_of_the_certificate_is_a_failure(said: str) -> None:
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
def test_a_newer_installed_kernel_is_pending(running: str, installed: list[str], pending: str) -> None:
    assert report.pending_kernel(running, installed) == pending


def test_a_due_reboot_has_its_reasons() -> None:
    assert report.reboot_reasons(False, ["stale"], "") == []
    assert report.reboot_reasons(True, ["libc6", "dbus", "libc6", ""], "") == ["libc6, dbus"]
    assert report.reboot_reasons(True, [], "6.1.0-10-amd64") == [
        "no reason is recorded",
        "kernel 6.1.0-10-amd64 is installed and does not run",
    ]


def test_the_usage_of_a_disk_is_shown_in_percent_and_gib() -> None:
    assert str(report.Usage("/", 100 << 30, 25 << 30)) == "/: 75 % used, 25.0 of 100.0 GiB free"
    assert report.is_real("ext4") and report.is_real("nfs4") and not report.is_real("tmpfs")
