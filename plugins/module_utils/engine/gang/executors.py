# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that places the engine's processes on the members of a gang. Private to the collection. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core.problems import Problem, nearest
from .. import adapters
from ..adapters.contract import Executor
from .declared import DASHBOARD, EPHEMERAL, RENDEZVOUS_PORT
from .declared import EXECUTOR as KEY
from .members import Gang


def names() -> list[str]:
    """The values of the key `executor`. The first is the default."""
    gangs = adapters.get().gangs
    return [gangs.executor, *sorted(gangs.executors)]


def of(name: Any) -> Executor | None:
    """An executor that is no part of the engine; None for the default, and for an unknown name."""
    return adapters.get().gangs.executors.get(name) if isinstance(name, str) else None


def normal(name: Any) -> str:
    """The name as releases have it: empty for the default."""
    return name if of(name) else ""


def secret(key: str, gang: Gang) -> str:
    """The secret of a gang's executor, the same on all members. It does not reveal `key`, the key of the channel."""
    members = "\0".join(member.node for member in gang.members)
    return hmac.digest(key.encode(), f"executor\0{gang.name}\0{members}".encode(), hashlib.sha256).hex()


def ports(raw: Mapping[str, Any]) -> range:
    """The ports of a declared gang's executor; empty where it needs only the rendezvous port."""
    found, first = of(raw.get(KEY)), raw.get(RENDEZVOUS_PORT)
    return range(first, first + found.ports) if found and isinstance(first, int) else range(0)


def opened(raw: Mapping[str, Any]) -> list[Any]:
    """The ports at which the engines of a declared gang find each other, as the firewall opens them to members."""
    found, first = of(raw.get(KEY)), raw.get(RENDEZVOUS_PORT)
    if found and isinstance(first, int):
        return [f"{first}-{first + found.opened - 1}"]
    return [first] if first else []


def problems(where: str, raw: Mapping[str, Any]) -> list[Problem]:
    """Every mistake in the executor of a declared gang. conflicts() compares the gang with other instances."""
    name, dashboard = raw.get(KEY), raw.get(DASHBOARD)
    found = []
    if not isinstance(dashboard, bool | None):
        found.append(Problem(where, "must be true or false", DASHBOARD, dashboard))
    elif dashboard and name in (None, names()[0]):
        message = f"belongs to another {KEY} than {names()[0]}, which has no dashboard: remove the key"
        found.append(Problem(where, message, DASHBOARD, dashboard))
    if name is None:
        return found
    if name not in names():
        message = f"must be one of {', '.join(names())}: {nearest(str(name), names())}"
        return [*found, Problem(where, message, KEY, name)]
    needed, first = ports(raw), EPHEMERAL[0]
    if (needed and needed.start < first < needed.stop) or needed.stop > 65536:
        message = (
            f"is the first of {len(needed)} ports that {KEY} {name} needs: take {first - len(needed)} or less, so that "
            f"the ports end before {first}"
        )
        found.append(Problem(where, message, RENDEZVOUS_PORT, needed.start))
    return found


def conflicts(
    where: str, raw: Mapping[str, Any], others: Iterable[tuple[str, Mapping[str, Any]]], keys: Sequence[str]
) -> Iterator[Problem]:
    """Ports of a gang's executor that another instance has. `others` are instances of one node with their names in
    messages, and may include the gang itself. `keys` are the keys of an instance that have a port."""
    needed = ports(raw)
    for label, other in others if needed else ():
        for key in keys:
            port = other.get(key)
            # Another check reports a port that two instances have.
            if isinstance(port, int) and port in needed[1:]:
                reason = f"is {key} of {label}: take another {RENDEZVOUS_PORT}, or another port there"
                yield port_problem(where, raw, port, reason)


def port_problem(where: str, raw: Mapping[str, Any], port: int, reason: str) -> Problem:
    """The mistake of a gang whose executor cannot have `port`, one of ports(). `reason` comes after the port."""
    needed = ports(raw)
    message = f"is the first of the ports to {needed[-1]} that {KEY} {raw[KEY]} needs: port {port} {reason}"
    return Problem(where, message, RENDEZVOUS_PORT, needed.start)
