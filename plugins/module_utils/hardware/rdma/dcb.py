# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the settings of Ethernet ports for lossless traffic by `dcb` of iproute2. Private to the collection.

The names are those of IEEE 802.1Q: priority flow control (PFC), enhanced transmission selection (ETS), and the table
that gives each DSCP its priority.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.commands import Outcome
from ...core.problems import is_integer

Run = Callable[[Sequence[str]], Outcome]

PRIORITIES = range(8)

UNSUPPORTED = "Operation not supported"
"""The answer for a network device without DCB. Source: iproute2 dcb/dcb.c, errno EOPNOTSUPP."""


@dataclass(frozen=True)
class Ets:
    """How traffic classes share the link."""

    willing: bool
    """Whether the switch may overwrite the values by DCBX."""
    bandwidth: list[int]
    """Percent of the bandwidth of each traffic class."""
    algorithms: list[str]
    """strict, ets, cbs or vendor, for each traffic class."""
    classes: list[int]
    """The traffic class of each priority."""


@dataclass(frozen=True)
class Dcb:
    """The settings of a port. None if the driver does not have this part, or the answer is not known."""

    pfc: list[int] | None = None
    """The lossless priorities."""
    pfc_delay: int | None = None
    """The delay of the link in bits; mlx5 reads it as the length of the cable in metres."""
    ets: Ets | None = None
    dscp: dict[int, int] | None = None
    """The priority of each DSCP with an entry of its own. With at least one entry, mlx5 trusts the DSCP."""
    modes: list[str] | None = None
    """The modes of DCBX: host, lld_managed, cee, ieee, static."""
    errors: list[str] = field(default_factory=list)
    """All errors except the error that the driver does not have a part."""


def read(program: str | None, netdev: str, run: Run) -> Dcb | None:
    """Read the settings of a network device; None without a `program`, or if the device's driver has no DCB."""
    if program is None:
        return None
    errors: list[str] = []
    answers = {}
    for part in ("pfc", "ets", "app", "dcbx"):
        answers[part] = _ask([program, "-j", part, "show", "dev", netdev], run, errors)
    if not errors and all(answer is None for answer in answers.values()):
        return None
    lossless, delay = pfc(answers["pfc"])
    return Dcb(lossless, delay, ets(answers["ets"]), dscp(answers["app"]), modes(answers["dcbx"]), errors)


def _ask(command: list[str], run: Run, errors: list[str]) -> Any:
    """The JSON of an answer; None without one. Adds to `errors` unless the driver does not have this part."""
    outcome = run(command)
    if outcome.failure:
        errors.append(outcome.message)
    elif outcome.code:
        words = " ".join(f"{outcome.stderr} {outcome.stdout}".split())[:300]
        if UNSUPPORTED not in words:
            errors.append(f"{' '.join(command)}: exit status {outcome.code}: {words or 'without a message'}")
    else:
        try:
            return json.loads(outcome.stdout)
        except (ValueError, RecursionError) as error:
            errors.append(f"{' '.join(command)}: not JSON: {error}")
    return None


def pfc(answer: Any) -> tuple[list[int] | None, int | None]:
    """The lossless priorities and the delay, of the answer to `pfc show`."""
    data = answer if isinstance(answer, dict) else {}
    flags = _list(data.get("prio_pfc"), bool)
    delay = data.get("delay")
    return (
        None if flags is None else [number for number, on in enumerate(flags) if on],
        delay if is_integer(delay) else None,
    )


def ets(answer: Any) -> Ets | None:
    """The shares of the traffic classes, of the answer to `ets show`."""
    data = answer if isinstance(answer, dict) else {}
    bandwidth, classes = _list(data.get("tc_bw"), int), _list(data.get("prio_tc"), int)
    algorithms = _list(data.get("tc_tsa"), str)
    if bandwidth is None or classes is None or algorithms is None:
        return None
    return Ets(data.get("willing") is True, bandwidth, algorithms, classes)


def dscp(answer: Any) -> dict[int, int] | None:
    """The priority by DSCP, of the answer to `app show`. Debian 13's version has a third element in each entry."""
    if not isinstance(answer, dict):
        return None
    entries = answer.get("dscp_prio", [])
    found = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, list) and len(entry) >= 2 and all(map(is_integer, entry[:2])):
            found[entry[0]] = entry[1]
    return dict(sorted(found.items()))


def modes(answer: Any) -> list[str] | None:
    """The modes of DCBX, of the answer to `dcbx show`."""
    return sorted(name for name, on in answer.items() if on is True) if isinstance(answer, dict) else None


def _list(value: Any, kind: type) -> list[Any] | None:
    """A list of eight values, for the priorities or the traffic classes; None for anything else."""
    if not isinstance(value, list) or len(value) != len(PRIORITIES):
        return None
    # For isinstance(), a bool is an int.
    sound = all(isinstance(item, kind) and isinstance(item, bool) == (kind is bool) for item in value)
    return value if sound else None
