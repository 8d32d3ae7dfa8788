# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is added to Debian's units of Prometheus and Alertmanager."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import units
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.settings import read_settings


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        (r'"Post \"https://a.example:8443/s3cret?k=1\": refused"', r'"Post \"https://a.example:8443/...\": refused"'),
        ("url=http://user:s3cret@hook.example/s3cret retry", "url=http://hook.example/... retry"),
        ("url=http://hook.example?token=s3cret retry", "url=http://hook.example/... retry"),
        ("msg=listening address=[::]:9093", "address=[::]:9093"),
    ],
)
def test_alertmanager_logs_no_path_user_or_parameters_of_a_webhook(said: str, logged: str) -> None:
    program = ["sh", "-c", 'printf "%s\\n" "$1" >&2; exit 3', "sh", said]
    ended = subprocess.run(
        ["/bin/bash", "-c", units.WITHOUT_PATHS, "alertmanager", *program], capture_output=True, text=True, check=False
    )
    # systemd sees the exit status of the program itself.
    assert ended.returncode == 3
    assert logged in ended.stderr and "s3cret" not in ended.stderr


def test_the_unit_of_prometheus_has_the_settings_as_options(settings: dict[str, Any]) -> None:
    changed = {**settings, "bind_address": "2001:db8::1", "external_url": "https://mon.example.com/prometheus"}
    lines = [line.removesuffix(" \\").strip() for line in units.prometheus(read_settings(changed)[0]).splitlines()]
    assert (
        lines[:2] == [units.HEADER, "[Unit]"]
        and lines[lines.index("ExecStart=") + 1] == "ExecStart=/usr/bin/prometheus"
    )
    for line in (
        "--config.file=/etc/prometheus/prometheus.yml",
        "--storage.tsdb.path=/var/lib/prometheus/metrics2/",
        f"--storage.tsdb.retention.time={settings['retention_days']}d",
        f"--storage.tsdb.retention.size={settings['retention_gib']}GB",
        "--web.listen-address=[2001:db8::1]:9090",
        "--web.external-url=https://mon.example.com/prometheus",
        "--web.config.file=/etc/prometheus/web.yml",
        "Restart=always",
        f"MemoryMax={settings['memory_max']}",
    ):
        assert line in lines
    assert "external-url" not in units.prometheus(read_settings(settings)[0])


def test_alertmanager_has_no_cluster_address(settings: dict[str, Any]) -> None:
    text = units.alertmanager(read_settings(settings)[0])
    lines = [line.removesuffix(" \\").strip() for line in text.splitlines()]
    for line in (
        "ExecStart=/bin/bash",
        "/usr/bin/prometheus-alertmanager",
        "--cluster.listen-address=",
        "--storage.path=/var/lib/prometheus/alertmanager/",
        "--web.listen-address=127.0.0.1:9093",
        "KillMode=mixed",
        "SendSIGKILL=yes",
    ):
        assert line in lines
    assert text.endswith("SendSIGKILL=yes\n")
