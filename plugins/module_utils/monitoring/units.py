# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of Prometheus and Alertmanager: what is added to Debian's own. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.addresses import in_url
from ..core.unit_files import systemd_quote
from .places import DIRECTORY, HEADER, SAMPLES, SILENCES
from .settings import Settings

CONSOLES = f"{DIRECTORY}/inference"
"""Beside the directories of the package, which hold what others installed."""

WEB = "web.yml"

_PATHS = r"""s#(https?://)([^@/\\" ]*@)?([^/?\\" ]+)[^\\" ]*#\1\3/...#g"""
WITHOUT_PATHS = f"""exec "$@" 2> >(exec sed --unbuffered --regexp-extended '{_PATHS}' >&2)"""
"""Runs a program, and takes what may be secret out of the addresses in its log: a webhook's path is its password. Up to
0.26, Alertmanager tells all of one that it could not reach. (Debian 12's systemd knows no LogFilterPatterns.)"""


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
        # It is alone: its port for others would be open to everybody.
        "--cluster.listen-address=",
        *_web(settings, settings.alertmanager_port, settings.alertmanager_external_url),
    ]
    command = ["-c", WITHOUT_PATHS, "alertmanager", "/usr/bin/prometheus-alertmanager", *options]
    more = [
        "SyslogIdentifier=prometheus-alertmanager",
        # The filter ends with the log, and not before its last words, for which it gets a moment.
        "KillMode=mixed",
        "ExecStopPost=/bin/sleep 0.2",
        # Debian's unit has `no`: with a filter that is not through by then, systemd would not start it again.
        "SendSIGKILL=yes",
        "",
    ]
    return _drop_in("/bin/bash", command, settings.memory_max) + "\n".join(more)


def _web(settings: Settings, port: int, url: str) -> list[str]:
    return [
        f"--web.listen-address={in_url(settings.bind_address)}:{port}",
        f"--web.config.file={DIRECTORY}/{WEB}",
        # A proxy in front takes the path of the URL off: here, everything is at its usual place.
        "--web.route-prefix=/",
        *([f"--web.external-url={url}"] if url else []),
    ]


def _drop_in(program: str, options: Iterable[str], memory_max: str) -> str:
    return "\n".join(
        [
            HEADER,
            "[Unit]",
            # However often it has failed: only systemd starts it again.
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
