# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of systemd units, byte for byte: the ids of releases depend on sandbox() and systemd_quote()."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.unit_files import (
    dynamic_user_sandbox,
    job_sandbox,
    sandbox,
    systemd_quote,
)

DYNAMIC = """\
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""


JOB = """\
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/var/lib/inference -/mnt
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


def test_the_sandbox_of_the_node_tool_does_not_change() -> None:
    text = sandbox("Why\nso", "CAP_KILL", "/var/lib/inference")
    assert text.startswith("\n# Why\n# so\nCapabilityBoundingSet=CAP_KILL\nNoNewPrivileges=yes\n")
    assert "ProtectSystem=strict\nReadWritePaths=/var/lib/inference\nProtectHome=read-only\n" in text
    assert "RestrictRealtime=yes\nRestrictSUIDSGID=yes\nLockPersonality=yes\n" in text
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "0723d322b74bafa2254eb4148e01c06b70975b5a8d92a0b40c40547fc8b25d80"
    )


def test_the_sandbox_of_a_dynamic_user_does_not_change() -> None:
    assert dynamic_user_sandbox() == DYNAMIC


def test_the_sandbox_of_a_job_lets_its_programs_use_any_system_call() -> None:
    writable = "/var/lib/inference -/mnt"
    assert job_sandbox(writable) == JOB
    assert job_sandbox(writable, families="AF_UNIX") == JOB.replace(" AF_INET AF_INET6", "")
    assert job_sandbox(writable, capabilities="CAP_CHOWN") == f"CapabilityBoundingSet=CAP_CHOWN\n{JOB}"


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("100%", "100%%"),
        ("$HOME", "$$HOME"),
        ('{"a": 1}', '"{\\"a\\": 1}"'),
        ("it's", '"it\'s"'),
        ("back\\slash", '"back\\\\slash"'),
        ("two\nlines", '"two\\nlines"'),
        ("a\ttab", '"a\\ttab"'),
    ],
)
def test_an_argument_is_quoted_as_systemd_reads_it(argument: str, quoted: str) -> None:
    assert systemd_quote(argument) == quoted
