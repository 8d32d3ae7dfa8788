# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the backup."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.backup import units

RIGHTS = """\
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER CAP_FSETID
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/var/lib/inference-backup -/var/lib/prometheus/node-exporter
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
"""

LIMITS = units.Limits({"backup": "02:30", "prune": "Sun 04:30", "check": ""}, 60, "50%", 6)


def test_a_job_without_a_schedule_has_no_timer() -> None:
    found = units.render(LIMITS, "sftp:u@host:/srv/x")
    assert set(found) == {
        "inference-backup.service",
        "inference-backup-prune.service",
        "inference-backup-check.service",
        "inference-backup.timer",
        "inference-backup-prune.timer",
    }
    timer = found["inference-backup-prune.timer"].splitlines()
    assert {"OnCalendar=Sun 04:30", "RandomizedDelaySec=60min", "FixedRandomDelay=yes", "Persistent=yes"} <= set(timer)


def test_a_job_has_limits_and_writable_paths() -> None:
    found = units.render(LIMITS, "/srv/my backups")
    lines = found["inference-backup.service"].splitlines()
    writable = '/var/lib/inference-backup -/var/lib/prometheus/node-exporter "-/srv/my backups"'
    assert f"ReadWritePaths={writable}" in lines
    assert "ExecStart=/usr/local/sbin/inference-backup backup" in lines
    assert {"TimeoutStartSec=6h", "CPUQuota=50%", "IOSchedulingClass=idle", "UMask=0077"} <= set(lines)
    # When a unit ends, systemd removes its directory in /run. So only the unit that backs up has this directory.
    assert [name for name, text in found.items() if "RuntimeDirectory=" in text] == ["inference-backup.service"]
    assert "RuntimeDirectory=inference-backup" in lines
    elsewhere = units.render(LIMITS, "sftp:u@host:/srv/x")["inference-backup.service"]
    assert elsewhere.endswith(RIGHTS)
