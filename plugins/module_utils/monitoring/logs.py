# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ships a machine's log by an rsyslog of this collection, in addition to the site's. Private to the collection; pure.

The journal is the queue: rsyslog reads the next line only after the server has accepted the line before. So no program
waits for a server that is down, and the disk keeps no second copy of the lines. Source: rsyslog's documentation of
imjournal, omfwd and RainerScript.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.problems import Problem
from ..core.unit_files import dynamic_user_sandbox
from . import engine_log, places
from .engine_log import extract, matches, quoted
from .places import HEADER

UNIT, CONFIG = places.LOG_UNIT, places.LOG_CONFIG
CHECK_UNIT, CHECK_TIMER = places.LOG_CHECK

STATE = places.LOG_STATE
POSITION = f"/var/lib/{STATE}/position"
"""The file with the position up to which the journal was shipped. rsyslog writes it after every line."""

PROGRAM = "/usr/sbin/rsyslogd"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Debian's certificates, from the package ca-certificates."""

CHECK_MINUTES = 5
"""Minutes between two checks. Each check writes a line to the journal, so the position moves even on a quiet
machine."""
STUCK_MINUTES = 2 * CHECK_MINUTES + 1

KERNEL, TOOL = "kernel", "inferctl"
"""Names that are no units: `kernel` for the kernel's log, `inferctl` for the commands of operators."""

FIELDS = ("event", "verdict", "was", "act", "evidence", "latency_ms")
"""Fields of our own services that are shipped, in addition to the message and the instance (core/journal.py). The step
of a swap is in its message."""

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*")
"""A name, an IPv4 address or an IPv6 address, without a port."""
NAME = re.compile(r"[A-Za-z0-9:_.@\\*?-]+")
SUFFIXES = ("service", "socket", "timer", "path", "target", "mount")

WHERE = "role monitoring"


@dataclass(frozen=True)
class Settings:
    """Where to ship a machine's log, and what of it. The role's variables `monitoring_log_…`."""

    host: str
    """The machine's name, which every line has."""
    server: str
    port: int
    protocol: str
    ca: str
    peer: str
    units: tuple[str, ...]

    @property
    def tls(self) -> bool:
        return self.protocol == "tls"

    @property
    def authorities(self) -> str:
        return self.ca or AUTHORITIES

    def problems(self) -> list[Problem]:
        """Every mistake in the settings."""
        found = []

        def refuse(name: str, message: str, value: object) -> None:
            found.append(Problem(WHERE, message, f"monitoring_log_{name}", value))

        for name, value in (("server", self.server), ("peer", self.peer)):
            if value and not HOST.fullmatch(value):
                refuse(name, "must be a name or an address, without a port", value)
        if not 1 <= self.port <= 65535:
            refuse("port", "must be from 1 to 65535", self.port)
        if self.ca and not self.tls:
            refuse(
                "ca", "needs monitoring_log_protocol: tls. Set the protocol, or leave monitoring_log_ca empty", self.ca
            )
        if self.ca and (not self.ca.startswith("/") or not self.ca.isprintable() or set(self.ca) & set("\"'\\")):
            refuse("ca", "must be an absolute path on the machine, without quotes", self.ca)
        if self.peer and not self.tls:
            refuse(
                "peer",
                "needs monitoring_log_protocol: tls. Set the protocol, or leave monitoring_log_peer empty",
                self.peer,
            )
        if not self.units:
            refuse("units", "is empty: name the units to ship, or leave monitoring_log_server empty", [])
        for unit in self.units:
            if not NAME.fullmatch(unit):
                refuse("units", "must be names of units; * stands for any characters, ? for one", unit)
        return found


def unit_pattern(units: Sequence[str]) -> str:
    """An expression for the units of these names. A name without a suffix stands for units of any kind."""
    names = "|".join(_glob(unit.removesuffix(".service")) for unit in units)
    return rf"^({names})(\.({'|'.join(SUFFIXES)}))?$"


def _glob(name: str) -> str:
    special = {"*": ".*", "?": ".", ".": r"\.", "\\": r"\\"}
    return "".join(special.get(character, character) for character in name)


def config(settings: Settings, authorities: str = "") -> str:
    """rsyslog's configuration. `authorities` is the digest of the certificates, so that new ones restart rsyslog."""
    lines = [
        HEADER,
        *([f"# {settings.authorities} is {authorities}."] if authorities else []),
        "global(",
        # journald keeps at most this much of a line, and cuts longer ones.
        '    maxMessageSize="64k"',
        # A report about a cut line would contain the beginning of the line, of any program.
        '    oversizeMsg.report="off"',
        # rsyslog's own messages go to the journal, like those of every service.
        '    processInternalMessages="off"',
        *([f'    defaultNetstreamDriverCAFile="{settings.authorities}"'] if settings.tls else []),
        ")",
        'main_queue(queue.type="direct")',
        f'module(load="imjournal" stateFile="{POSITION}" persistStateInterval="1" ignorePreviousMessages="on"',
        '    rateLimit.interval="0")',
        'module(load="mmutf8fix")',
        'module(load="mmjsonparse")',
        'template(name="time" type="string" string="%timereported:::date-rfc3339%")',
        'template(name="line" type="string" string="%$.line%\\n")',
        "",
        *_which(settings.units),
        "",
        # Replaces bytes that are no UTF-8: no collector could read the line.
        'action(type="mmutf8fix")',
        "set $.line!timestamp = exec_template('time');",
        f"set $.line!host = {quoted(settings.host)};",
        "set $.line!unit = $.unit;",
        "set $.line!severity = $syslogseverity-text;",
        f"set $.instance = {extract('$.unit', '^vllm@(.*)[.]service$', 1)};",
        "if $.instance == '' then { set $.instance = $!INFERENCE_INSTANCE; }",
        "if $.instance != '' then { set $.line!instance = $.instance; }",
        "if $.engine == 1 then {",
        *(f"    {line}" for line in engine_log.script()),
        "} else {",
        "    set $.line!message = $msg;",
        "    if $msg startswith '{' then {",
        '        action(type="mmjsonparse" cookie="" container="$.parsed")',
        "        if $parsesuccess == 'OK' then { set $.line!data = $.parsed; }",
        "    }",
        *(
            f"    if $!INFERENCE_{name.upper()} != '' then {{ set $.line!data!{name} = $!INFERENCE_{name.upper()}; }}"
            for name in FIELDS
        ),
        "}",
        "",
        *_forward(settings),
    ]
    return "\n".join(lines) + "\n"


def _which(units: Sequence[str]) -> list[str]:
    """Finds the unit of a line, and stops if this unit is not shipped.

    A field that a program can set decides only together with a field that journald itself sets.
    """
    return [
        # Ansible's modules log their options, and system prompts are among these.
        "if $!SYSLOG_IDENTIFIER startswith 'ansible-' then { stop }",
        "set $.engine = 0;",
        "if $!_TRANSPORT == 'kernel' then {",
        f"    set $.unit = '{KERNEL}';",
        # A line that Docker has written for a container. Only the containers of our engines count.
        "} else if $!_SYSTEMD_UNIT == 'docker.service' and $!CONTAINER_ID != '' then {",
        "    if not re_match($!CONTAINER_TAG, '^vllm@') then { stop }",
        "    set $.unit = $!CONTAINER_TAG & '.service';",
        "    set $.engine = 1;",
        # A message of systemd about a unit.
        "} else if $!_PID == '1' and $!UNIT != '' then {",
        "    set $.unit = $!UNIT;",
        f"}} else if $!SYSLOG_IDENTIFIER == '{TOOL}' and $!_UID == '0'",
        "    and not ($!_SYSTEMD_UNIT startswith 'inference-' or $!_SYSTEMD_UNIT startswith 'vllm@') then {",
        f"    set $.unit = '{TOOL}';",
        "} else {",
        "    set $.unit = $!_SYSTEMD_UNIT;",
        "}",
        f"if not {matches('$.unit', unit_pattern(units))} then {{ stop }}",
    ]


def _forward(settings: Settings) -> list[str]:
    tls = [
        '    streamDriver="gtls" streamDriverMode="1" streamDriverAuthMode="x509/name"',
        f'    streamDriverPermittedPeers="{settings.peer or settings.server}"',
    ]
    return [
        f'action(type="omfwd" target="{settings.server}" port="{settings.port}" protocol="tcp" template="line"',
        *(tls if settings.tls else []),
        # Rather ships a line twice than not at all.
        '    resendLastMSGOnReconnect="on"',
        '    keepAlive="on" keepAlive.time="60" keepAlive.interval="15" keepAlive.probes="4"',
        # Retries without end. Meanwhile the lines stay in the journal.
        '    queue.type="direct" action.resumeRetryCount="-1" action.resumeInterval="5" action.resumeIntervalMax="30")',
    ]


def units() -> dict[str, str]:
    """The text of each unit, by name."""
    return {
        UNIT: f"""\
{HEADER}
[Unit]
Description=Ships the log of this machine's services
Wants=network-online.target
After=network-online.target
# systemd starts it again after any number of failures.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={PROGRAM} -n -iNONE -f {CONFIG}
Restart=always
RestartSec=5
# After SIGTERM, rsyslog would drop the line that it holds, and record the line as shipped.
# After SIGKILL, it ships the line again.
KillSignal=SIGKILL
SuccessExitStatus=SIGKILL
# The service may read no files except the journal.
DynamicUser=yes
SupplementaryGroups=systemd-journal
StateDirectory={STATE}
StateDirectoryMode=0700
UMask=0077
{dynamic_user_sandbox()}# Engines have priority.
Nice=5
CPUWeight=20
OOMScoreAdjust=500
MemoryMax=256M

[Install]
WantedBy=multi-user.target
""",
        CHECK_UNIT: f"""\
{HEADER}
[Unit]
Description=Check that the log of this machine is shipped

[Service]
Type=oneshot
# Fails if the last line that was read is too old. The start of this check writes a line itself.
ExecStart=/usr/bin/find {POSITION} -mmin +{STUCK_MINUTES} -exec false {{}} +
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateNetwork=yes
NoNewPrivileges=yes
""",
        CHECK_TIMER: f"""\
{HEADER}
[Unit]
Description=Check every {CHECK_MINUTES} min that the log of this machine is shipped

[Timer]
OnActiveSec={CHECK_MINUTES}min
OnUnitInactiveSec={CHECK_MINUTES}min
AccuracySec=10s

[Install]
WantedBy=timers.target
""",
    }
