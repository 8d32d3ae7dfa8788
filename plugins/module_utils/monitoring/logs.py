# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a machine ships its log: an rsyslog of our own beside the site's. Private to the collection; pure.

The journal is its queue: a line is read when the one before has been handed to the server, so that a server that is
away holds up no program, and nothing is kept twice. Source: rsyslog's documentation of imjournal, omfwd and
RainerScript.
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
"""How far the journal was shipped; written with every line, once that is handed over."""

PROGRAM = "/usr/sbin/rsyslogd"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Debian's own, of the package ca-certificates."""

CHECK_MINUTES = 5
"""Between two checks. Each is a line of the journal itself: a position that stands still is no sign of silence."""
STUCK_MINUTES = 2 * CHECK_MINUTES + 1

KERNEL, TOOL = "kernel", "inferctl"
"""What is shipped by these names is no unit: the kernel's log, and what people do by the node's tool."""

FIELDS = ("event", "verdict", "was", "act", "evidence", "latency_ms")
"""What our own services say beside the words, and the instance (node/journal.py)."""

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*")
"""A name, an address, or one of IPv6; with a port it is none."""
NAME = re.compile(r"[A-Za-z0-9:_.@\\*?-]+")
SUFFIXES = ("service", "socket", "timer", "path", "target", "mount")

WHERE = "role monitoring"


@dataclass(frozen=True)
class Settings:
    """Where a machine's log goes, and what of it. Everything of the role's variables `monitoring_log_…`."""

    host: str
    """The machine's name, in every line."""
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
        """Every mistake."""
        found = []

        def refuse(name: str, message: str, value: object) -> None:
            found.append(Problem(WHERE, message, f"monitoring_log_{name}", value))

        for name, value in (("server", self.server), ("peer", self.peer)):
            if value and not HOST.fullmatch(value):
                refuse(name, "must be a name or an address, without a port", value)
        if not 1 <= self.port <= 65535:
            refuse("port", "must be from 1 to 65535", self.port)
        if self.ca and not self.tls:
            refuse("ca", "goes with monitoring_log_protocol: tls", self.ca)
        if self.ca and (not self.ca.startswith("/") or not self.ca.isprintable() or set(self.ca) & set("\"'\\")):
            refuse("ca", "must be an absolute path on the machine, without quotes", self.ca)
        if self.peer and not self.tls:
            refuse("peer", "goes with monitoring_log_protocol: tls", self.peer)
        if not self.units:
            refuse("units", "is empty: name what is shipped, or leave monitoring_log_server empty", [])
        for unit in self.units:
            if not NAME.fullmatch(unit):
                refuse("units", "must be names of units, where * and ? stand for others", unit)
        return found


def unit_pattern(units: Sequence[str]) -> str:
    """Finds the units of these names; one without a suffix may have any."""
    names = "|".join(_glob(unit.removesuffix(".service")) for unit in units)
    return rf"^({names})(\.({'|'.join(SUFFIXES)}))?$"


def _glob(name: str) -> str:
    special = {"*": ".*", "?": ".", ".": r"\.", "\\": r"\\"}
    return "".join(special.get(character, character) for character in name)


def config(settings: Settings, authorities: str = "") -> str:
    """The configuration of rsyslog; `authorities` is a digest of theirs, so that others have it restarted."""
    lines = [
        HEADER,
        *([f"# {settings.authorities} is {authorities}."] if authorities else []),
        "global(",
        # What journald keeps of a line; a longer one is cut.
        '    maxMessageSize="64k"',
        # Of that it would tell with the beginning of the line, whosever it is.
        '    oversizeMsg.report="off"',
        # Its own words go to the journal, as those of any service.
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
        # A byte that is no text would make of the line what no collector reads.
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
    """Finds whose line it is, by what journald vouches for, and stops where its unit is not shipped."""
    return [
        # Ansible's modules tell what they were called with: system prompts are among that.
        "if $!SYSLOG_IDENTIFIER startswith 'ansible-' then { stop }",
        "set $.engine = 0;",
        "if $!_TRANSPORT == 'kernel' then {",
        f"    set $.unit = '{KERNEL}';",
        # Docker has written it for a container. Those of others are none of ours.
        "} else if $!_SYSTEMD_UNIT == 'docker.service' and $!CONTAINER_ID != '' then {",
        "    if not re_match($!CONTAINER_TAG, '^vllm@') then { stop }",
        "    set $.unit = $!CONTAINER_TAG & '.service';",
        "    set $.engine = 1;",
        # systemd's own words on a unit.
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
        # A line twice rather than not at all.
        '    resendLastMSGOnReconnect="on"',
        '    keepAlive="on" keepAlive.time="60" keepAlive.interval="15" keepAlive.probes="4"',
        # For as long as it takes; the journal waits.
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
# However often it has failed: only systemd starts it again.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={PROGRAM} -n -iNONE -f {CONFIG}
Restart=always
RestartSec=5
# Asked to end, it would drop the line that it holds, and remember it as shipped. Cut off, it ships that line again.
KillSignal=SIGKILL
SuccessExitStatus=SIGKILL
# It may read no files but the journal.
DynamicUser=yes
SupplementaryGroups=systemd-journal
StateDirectory={STATE}
StateDirectoryMode=0700
UMask=0077
{dynamic_user_sandbox()}# Engines come first.
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
Description=Whether the log of this machine is shipped

[Service]
Type=oneshot
# Fails where the last line that was shipped, or was not to be, is too old. That this check starts, is a line.
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
Description=Whether the log of this machine is shipped, every {CHECK_MINUTES} min

[Timer]
OnActiveSec={CHECK_MINUTES}min
OnUnitInactiveSec={CHECK_MINUTES}min
AccuracySec=10s

[Install]
WantedBy=timers.target
""",
    }
