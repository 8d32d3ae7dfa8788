# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deaths of an instance, with the requests that were in flight. Private to the collection.

A death is the end, by itself, of an engine that served. systemd starts the engine again, and the budget counts the
death.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...engine.state.drains import format_time, parse_time
from .state import State, in_window

SCHEMA = 1

MODE = 0o600
"""For root alone: the record names clients."""

KEPT = 50
"""How many of the last deaths to record, of the instance and of engines on other nodes each."""

SAME = timedelta(seconds=10)
"""Two gateways can report the same death. The times in their reports differ by less than this."""


@dataclass(frozen=True)
class Request:
    """A request that was in flight at the death of an engine."""

    id: str
    """The X-Request-ID, as in the gateway's log and in the client's answer."""
    key: str
    """The name of the client's key."""
    path: str
    status: int | None
    """The status of the answer; 400 or None if the client closed the connection before an answer."""

    def __str__(self) -> str:
        return f"{self.id} (key {self.key}, {self.path})"


@dataclass(frozen=True)
class Seen:
    """A death of the last hour, as a gateway reports it."""

    name: str
    """The instance's name, which is the name of its replica set at the gateways."""
    node: str
    age: float
    """Seconds since the death."""
    keys: tuple[str, ...]
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Death:
    """A death. `time` is ISO 8601 in UTC. `keys` are the names of keys with requests in flight."""

    time: str
    keys: tuple[str, ...] = ()
    requests: tuple[Request, ...] = ()
    name: str = ""
    node: str = ""
    """Which engine died; both are empty for the instance itself."""


@dataclass(frozen=True)
class Deaths:
    """The deaths of an instance, and the deaths on other nodes that gateways report. The oldest come first."""

    own: tuple[Death, ...] = ()
    elsewhere: tuple[Death, ...] = ()

    def recent(self, now: datetime) -> Deaths:
        """The deaths within the window."""
        own = tuple(each for each in self.own if in_window(each.time, now))
        return Deaths(own, tuple(each for each in self.elsewhere if in_window(each.time, now)))

    @property
    def faults(self) -> int:
        """How many own deaths count as faults of this node.

        A death on another node with the same key in flight excuses one death here: a request that kills engines kills
        them everywhere, and a broken node has more deaths than the others.
        """
        left, count = list(self.elsewhere), 0
        for death in self.own:
            same = next((other for other in left if set(other.keys) & set(death.keys)), None)
            if same is None:
                count += 1
            else:
                left.remove(same)
        return count

    @property
    def by_key(self) -> dict[str, int]:
        """At how many of the instance's own deaths each key had requests in flight; the largest number comes first."""
        return dict(Counter(key for death in self.own for key in death.keys).most_common())

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "deaths": [asdict(each) for each in (*self.own, *self.elsewhere)]}


def read(paths: Paths, name: str) -> Deaths:
    """The recorded deaths. A damaged file counts as none: it must not prevent recovery."""
    try:
        value = files.read_json(paths.deaths(name))
        if not isinstance(value, dict):
            return Deaths()
        # Earlier versions recorded only times.
        found = [_death({"time": time}) for time in value.get("times", ())]
        found += [_death(each) for each in value.get("deaths", ())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Deaths()
    return Deaths(tuple(each for each in found if not each.node), tuple(each for each in found if each.node))


def _death(value: Mapping[str, Any]) -> Death:
    """Raises KeyError, TypeError, AttributeError, ValueError."""
    parse_time(str(value["time"]))
    return Death(
        time=str(value["time"]),
        keys=tuple(map(str, value.get("keys", ()))),
        requests=tuple(Request(**each) for each in value.get("requests", ())),
        name=str(value.get("name", "")),
        node=str(value.get("node", "")),
    )


def record(paths: Paths, name: str, now: datetime, seen: Sequence[Seen] = (), node: str = "") -> Death:
    """Record a death of the instance `name` with the gateways' reports. `node`: this node's name at the gateways.

    Returns the death. Raises OSError.
    """
    known = read(paths, name)
    own = [each for each in seen if (each.name, each.node) == (name, node)]
    # The gateways also report earlier deaths of this instance.
    last = min((each.age for each in own), default=0.0)
    mine = [each for each in own if each.age - last < SAME.total_seconds()]
    death = Death(
        format_time(now),
        tuple(dict.fromkeys(key for each in mine for key in each.keys)),
        tuple(dict.fromkeys(request for each in mine for request in each.requests)),
    )
    elsewhere = list(known.elsewhere)
    for each in seen:
        if each.node != node:
            time = format_time(now - timedelta(seconds=each.age))
            _merge(elsewhere, Death(time, each.keys, (), each.name, each.node))
    elsewhere.sort(key=lambda each: each.time)
    whole = Deaths((*known.own, death)[-KEPT:], tuple(elsewhere[-KEPT:]))
    files.write(paths.deaths(name), files.to_json(whole.to_json()), MODE)
    return death


def _merge(known: list[Death], one: Death) -> None:
    """Add a death, or add its keys to the same death in the list."""
    for place, other in enumerate(known):
        apart = abs(parse_time(other.time) - parse_time(one.time))
        if (other.name, other.node) == (one.name, one.node) and apart < SAME:
            keys = tuple(dict.fromkeys((*other.keys, *one.keys)))
            known[place] = replace(other, keys=keys)
            return
    known.append(one)


def died_last(deaths: Deaths, known: State) -> bool:
    """Whether the last fault was a death that came after the last step."""
    # ISO 8601 in UTC sorts by time.
    return bool(deaths.own) and (not known.steps or deaths.own[-1].time >= known.steps[-1].time)
