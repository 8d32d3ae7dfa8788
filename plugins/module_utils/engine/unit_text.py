# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an engine's unit that may change without another release, and the id of a release. Private to the
collection. Pure.

This file does not import release.py, so that modules which only move or renew kept releases stay small.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

LABEL = "inference.release"
"""Container label that holds the release's number."""

READ_ONLY = ("--read-only", "--tmpfs=/tmp:exec")
"""Docker's arguments for a container that writes only to its memory and its compile cache. Engines load code that they
compile in /tmp."""

PREPARE_TIMEOUT = 120
"""Seconds for the unit's commands before the supervisor starts."""

CLEAN_UP = 30
"""Seconds that systemd gives the supervisor to clean up after the kill of an engine that hangs."""

FIRST_TIMEOUT = 120
"""TimeoutStartSec= in the units of version 0.1.0, in seconds. The ids of releases are made with this value."""

_TIMEOUT = re.compile(r"^TimeoutStartSec=.*$", re.MULTILINE)


def start_timeout(seconds: int, *, gang: bool) -> int | str:
    """TimeoutStartSec= of a unit, for an engine that may load for `seconds`: longer than the supervisor's own limit. A
    gang waits for its members without a limit.

    The supervisor does not rely on EXTEND_TIMEOUT_USEC=: `systemctl daemon-reload` makes systemd forget by how much a
    service has extended its timeout (seen with systemd 252 and 257), and systemd would stop an engine that loads.
    """
    return "infinity" if gang else PREPARE_TIMEOUT + seconds + CLEAN_UP


def with_timeout(unit: str, timeout: int | str) -> str:
    """The unit with another TimeoutStartSec=."""
    return _TIMEOUT.sub(f"TimeoutStartSec={timeout}", unit)


def unnumbered(unit: str, number: int, memory_limit: str, *, read_only: bool) -> str:
    """The unit as the id counts it: release 0, without the release's own memory limit, with a writable container, and
    with the first timeout."""
    text = re.sub(
        rf"^(Exec\w+=.* --release ){number}$", r"\g<1>0", with_timeout(unit, FIRST_TIMEOUT), flags=re.MULTILINE
    )
    once = [
        (rf"^(# .*: release ){number}( of instance )", r"\g<1>0\2"),
        (rf"^(    --label={re.escape(LABEL)}=){number}( \\)$", r"\g<1>0\2"),
    ]
    if read_only:
        once.append(("".join(rf"^    {re.escape(argument)} \\\n" for argument in READ_ONLY), ""))
    if memory_limit:
        once.append((rf"^    --memory={re.escape(memory_limit)} \\\n", ""))
    for pattern, replacement in once:
        # The arguments of Docker come before those of the engine, which may look like them.
        text = re.sub(pattern, replacement, text, count=1, flags=re.MULTILINE)
    return text


def identity(unit: str, environment: str, revision: str, warm_up: Sequence[Mapping[str, Any]]) -> str:
    """The id of a release; `unit` is unnumbered.

    Only unit, environment, revision and prompts make the id: a new field of a later version changes no id.
    """
    text = f"{unit}\0{environment}\0{revision}"
    if warm_up:
        text += f"\0{json.dumps(list(warm_up), sort_keys=True)}"
    return hashlib.sha256(text.encode()).hexdigest()
