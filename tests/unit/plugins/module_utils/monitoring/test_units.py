# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is added to Debian's units of Prometheus and Alertmanager."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import units


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        (r'"Post \"https://a.example:8443/s3cret?k=1\": refused"', r'"Post \"https://a.example:8443/...\": refused"'),
        ("url=http://user:s3cret@hook.example/s3cret retry", "url=http://hook.example/... retry"),
        ("url=http://hook.example?token=s3cret retry", "url=http://hook.example/... retry"),
        ("msg=listening address=[::]:9093", "address=[::]:9093"),
    ],
)
def test_a_webhooks_address_is_not_logged_whole(said: str, logged: str) -> None:
    program = ["sh", "-c", 'printf "%s\\n" "$1" >&2; exit 3', "sh", said]
    ended = subprocess.run(
        ["/bin/bash", "-c", units.WITHOUT_PATHS, "alertmanager", *program], capture_output=True, text=True, check=False
    )
    # systemd sees how the program itself has ended.
    assert ended.returncode == 3
    assert logged in ended.stderr and "s3cret" not in ended.stderr
