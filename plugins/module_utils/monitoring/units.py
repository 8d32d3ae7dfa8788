# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drop-ins for Debian's units of Prometheus and Alertmanager. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.addresses import in_url
from ..core.unit_files import systemd_quote
from .places import DIRECTORY, HEADER, SAMPLES, SILENCES
from .settings import Settings

CONSOLES = f"{DIRECTORY}/inference"
"""Not the directories of Debian's package, which may have consoles that people installed."""

WEB = "web.yml"

_PATHS = r"""s#(https?://)([^@/\\" ]*@)?([^/?\\" ]+)[^\\" ]*#\1\3/...#g"""
WITHOUT_PATHS = f"""exec "$@" 2> >(exec sed --unbuffered --regexp-extended '{_PATHS}' >&2)"""
"""Runs a program, and removes user, path and query from the addresses in its log. A webhook's path is its password.

Up to version 0.26, Alertmanager logs the whole address of a receiver that it could not reach. Debian 12's systemd does
not have LogFilterPatterns.
"""


def prometheus(settings: Settings) -> str:
    """The drop-in for prometheus.service."""
    options = [
        f"--config.file={DIRECTORY}/prometheus.yml",
        f"--storage.tsdb.path={SAMPLES}/",
        f"--storage.tsdb.retention.time={settings.retention_days}d",
        f"--storage.tsdb.retention.size={settings.retention_gib}GB",
        f"--web.console.templates={CONSOLES}",
        f"--web.console.libraries={CONSOLES}",
        *_web(settings, settings.port, settings.external_url),
    ]
    return _drop_in("/usr/bin/prometheus", options, settings.memory_max)


def alertmanager(settings: Settings) -> str:
    """The drop-in for prometheus-alertmanager.service."""
    options = [
        f"--config.file={DIRECTORY}/alertmanager.yml",
        f"--storage.path={SILENCES}/",
        # No cluster: this Alertmanager has no peers, and its cluster port would be open to the network.
        "--cluster.listen-address=",
        *_web(settings, settings.alertmanager_port, settings.alertmanager_external_url),
    ]
    command = ["-c", WITHOUT_PATHS, "alertmanager", "/usr/bin/prometheus-alertmanager", *options]
    more = [
        "SyslogIdentifier=prometheus-alertmanager",
        # SIGTERM goes to Alertmanager alone. The filter ends when the log ends, and gets 0.2 s for the last lines.
        "KillMode=mixed",
        "ExecStopPost=/bin/sleep 0.2",
        # With the `no` of Debian's unit, systemd would not start Alertmanager again while an old filter still runs.
        "SendSIGKILL=yes",
        "",
    ]
    return _drop_in("/bin/bash", command, settings.memory_max) + "\n".join(more)


def _web(settings: Settings, port: int, url: str) -> list[str]:
    return [
        f"--web.listen-address={in_url(settings.bind_address)}:{port}",
        f"--web.config.file={DIRECTORY}/{WEB}",
        # A proxy in front removes the path of the URL from requests, so the pages here are at their usual paths.
        "--web.route-prefix=/",
        *([f"--web.external-url={url}"] if url else []),
    ]


def _drop_in(program: str, options: Iterable[str], memory_max: str) -> str:
    return "\n".join(
        [
            HEADER,
            "[Unit]",
            # No limit of starts: systemd alone starts the service again after a failure.
            "StartLimitIntervalSec=0",
            "[Service]",
            "ExecStart=",
            f"ExecStart={command_line(program, options)}",
            "Restart=always",
            "RestartSec=5",
            f"MemoryMax={memory_max}",
            "",
        ]
    )


def command_line(program: str, options: Iterable[str]) -> str:
    """A program and its options, one on a line."""
    return " \\\n    ".join([program, *map(systemd_quote, options)])
