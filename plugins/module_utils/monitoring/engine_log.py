# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of an engine's log may leave the machine, as a script for rsyslog. Private to the collection; pure.

Only lines that are known to be harmless leave, since a later version of the engine may log requests anywhere. The
engine's adapter has the forms of the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import adapters

LEFT_OUT = "(left out)"

FRAME = (
    r'^ *(Traceback \(most recent call last\):|File "[^"]+", line [0-9]+, in [^ ]+'
    r"|(During handling of|The above exception was) [a-z ,:]+)$"
)
"""The frames of a traceback. The lines of code stay on the machine: the engine's source has them."""

EXCEPTION = r"^([A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Interrupt|Exit))(:|$)"
"""The exception that ended the traceback. Its message may quote a request."""


def quoted(text: str) -> str:
    """A constant in a script for rsyslog."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def matches(expression: str, pattern: str) -> str:
    return f"re_match({expression}, {quoted(pattern)})"


def extract(expression: str, pattern: str, part: int) -> str:
    """The text that a group of a pattern matches; empty if nothing matches."""
    return f"re_extract({expression}, {quoted(pattern)}, 0, {part}, '')"


def script() -> Sequence[str]:
    """The script. It copies the parts of $msg that may leave to $.line, with level, process and place of the message.

    If no part may leave, the script drops the line.
    """
    log = adapters.get().log
    levels = [
        f"    if $.level == '{level}' then {{ set $.line!severity = '{word}'; }}"
        for level, word in log.severities.items()
    ]
    return [
        # Every line of a record except its last ends with a carriage return.
        "set $.said = replace($msg, '\\r', '');",
        f"set $.head = {extract('$.said', log.line, 0)};",
        f"set $.level = {extract('$.said', log.line, log.level)};",
        "if $.level == 'DEBUG' then { stop }",
        "if $.level != '' then {",
        *levels,
        f"    set $.line!data!process = {extract('$.said', log.line, log.process)};",
        f"    set $.line!data!source = {extract('$.said', log.line, log.place)};",
        "} else {",
        f"    set $.head = {extract('$.said', log.prefix, 0)};",
        "}",
        "set $.text = substring($.said, strlen($.head), strlen($.said));",
        f"if {matches('$.text', FRAME)} then {{",
        "    set $.line!message = $.text;",
        f"}} else if {matches('$.text', log.exceptions)} then {{",
        "    set $.line!message = $.text;",
        f"}} else if {matches('$.text', EXCEPTION)} then {{",
        "    # The exception's message may continue in further lines of the record.",
        "    set $/cut = $.unit & $.head;",
        f"    set $.line!message = {extract('$.text', EXCEPTION, 1)} & ': {LEFT_OUT}';",
        f"}} else if $.level == '' and {matches('$.said', log.bare)} then {{",
        "    set $.line!message = $.text;",
        "} else if $.level == '' or $.text startswith ' ' or $/cut == $.unit & $.head then {",
        "    stop",
        f"}} else if {matches('$.said', log.known)} then {{",
        f"    set $.kept = {extract('$.text', log.content, 1)};",
        "    set $.line!message = $.text;",
        f"    if $.kept != '' then {{ set $.line!message = $.kept & ' {LEFT_OUT}'; }}",
        "} else if $.level == 'INFO' then {",
        "    stop",
        "} else {",
        f"    set $.line!message = '{LEFT_OUT}';",
        "}",
    ]
