# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of HAProxy, made from the operator's settings. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.problems import Problem
from ..engine import adapters
from ..engine.environment import mark
from ..models.registry.routing import Routing
from . import floating, forms
from .backends import Backend, Fleet, Replica, check_replicas, fleet_of
from .config import UNKNOWN_MODEL, limit_mib, render
from .endpoints import is_loopback
from .errors import too_large
from .keys import ANONYMOUS, Key, key_maps, read_keys
from .names import (
    AUDIO_TOO_LARGE,
    DEATHS_LUA,
    MARKS_MAP,
    SET,
    SETS_PATH,
    SEVERAL_MAP,
    STATES_AWK,
    TOO_LARGE,
    WRONG_TASKS_MAP,
)
from .settings import ENGINE_PATHS, Settings, absent_settings, read_settings

LUA = Path(__file__).with_name("gateway.lua")
DEATHS = Path(__file__).with_name(DEATHS_LUA)
AWK = Path(__file__).with_name(STATES_AWK)


@dataclass(frozen=True)
class Plan:
    """The files that a gateway must have, or the problems because of which there are no files."""

    problems: list[Problem] = field(default_factory=list)
    config: str = ""
    maps: Mapping[str, str] = field(default_factory=dict)
    """Files that can change while HAProxy runs, by file name. engines.map holds secrets."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that HAProxy reads when it loads or starts, by file name."""
    backends: Mapping[str, list[str]] = field(default_factory=dict)
    """Hosts that serve each replica set, by name of the set."""
    floating: str = ""
    """The text of keepalived.conf; empty if there is no floating address."""
    warnings: list[Problem] = field(default_factory=list)
    """Input that works, but perhaps not as intended."""


def plan(
    raw_settings: Mapping[str, Any],
    replicas: Iterable[Replica],
    declared_keys: Iterable[Any],
    models: Iterable[str] = (),
    shared: Mapping[str, Any] | None = None,
    tls: Mapping[str, Any] | None = None,
) -> Plan:
    """Make all files, or list the mistakes. Keys may name `models` that no engine serves.

    `shared` has the role's variables `gateway_floating_…`, without this prefix. `tls` is for forms.problems().
    """
    if absent := absent_settings(raw_settings):
        return Plan(absent)
    settings, problems = read_settings(raw_settings)
    replicas = list(replicas)
    problems += check_replicas(replicas)
    problems += floating.problems(shared) if shared else []
    problems += forms.problems(tls) if tls else []
    problems += _bind_problems(settings, replicas)
    fleet = fleet_of(replicas, models)
    keys, found = read_keys(declared_keys, fleet, settings.requests_per_minute, settings.concurrent_requests)
    problems += [*found, *_engine_key_problems(fleet)]
    if settings.anonymous:
        keys.append(Key(ANONYMOUS, "", None, settings.requests_per_minute, settings.concurrent_requests))
    if not keys and not found:
        message = (
            "is empty, so no client could use the gateway: declare keys. If every client that reaches the gateway may"
            " use it, set gateway_anonymous to true instead"
        )
        problems.append(Problem("role gateway", message, "gateway_keys"))
    if problems:
        return Plan(problems)
    return Plan(
        config=render(settings, fleet),
        maps={
            **key_maps(keys, fleet),
            "models.map": _routes(fleet),
            "engines.map": _engine_keys(fleet),
            MARKS_MAP: _marks(fleet),
            WRONG_TASKS_MAP: _wrong_tasks(settings, fleet),
            SEVERAL_MAP: _several(fleet),
        },
        files=_files(settings, fleet),
        backends={
            backend.replicas[0].name: [replica.host for replica in backend.replicas]
            for backend in fleet.backends
            if backend.own
        },
        floating=floating.render(shared) if shared else "",
        warnings=_routing_warnings(fleet, settings.routing),
    )


def _routing_warnings(fleet: Fleet, default: Routing) -> list[Problem]:
    """A warning for each replica set whose models ask for an affinity that has no effect.

    `default` is the routing of models that ask for none. A set of one engine gets no warning for the default.
    """
    found = []
    for backend in fleet.backends:
        asked = {replica.routing or default for replica in backend.replicas}
        own = any(replica.routing and replica.routing.sources for replica in backend.replicas)
        if not backend.own or not any(routing.sources for routing in asked):
            continue
        where, hosts = f"replica set {backend.name.removeprefix(SET)}", len({each.host for each in backend.replicas})
        if len(asked) > 1:
            models = ", ".join(sorted({replica.model for replica in backend.replicas}))
            message = (
                f"its models ({models}) ask for different routing. The gateway sends each request to the engine with"
                " the least connections, until all engines of the set serve models with the same routing"
            )
            found.append(Problem(where, message, "routing"))
        elif hosts == 1 and own:
            message = (
                f"has no effect: the set has one engine, on {backend.replicas[0].host}. Remove it, or add an engine"
            )
            found.append(Problem(where, message, "routing", "affinity"))
    return found


def _engine_key_problems(fleet: Fleet) -> list[Problem]:
    """A problem for each backend whose engines accept no common key.
    A request gets one key, before its engine is chosen."""
    return [
        Problem(
            backend.name,
            f"its engines do not all accept one key of the inventory: {', '.join(hosts)}. Give these nodes the same"
            " vllm_api_key. If the engines run with another key, keep that key in vllm_accepted_keys until"
            " baremetal.inference.update_model has brought the new key",
        )
        for backend in fleet.backends
        if _engine_key(backend) is None
        for hosts in [sorted({replica.host for replica in backend.replicas})]
    ]


def _engine_key(backend: Backend) -> str | None:
    """The key that a backend's engines get, empty for none; None if they have no key in common.

    Prefers a key that the next releases accept as well, since their swaps need that.
    """
    keys = dict.fromkeys(key for replica in backend.replicas for key in (replica.engine_key, *replica.other_keys))
    for soon in (True, False):
        for key in [*keys, ""]:
            if all(replica.accepts(key, soon=soon) for replica in backend.replicas):
                return key
    return None


def _bind_problems(settings: Settings, replicas: Iterable[Replica]) -> list[Problem]:
    """A problem if nodes cannot reach the gateway: before a swap, they read what the gateway sends to their engines."""
    nodes = sorted({replica.host for replica in replicas} - {settings.name})
    if not nodes or not is_loopback(settings.bind_address):
        return []
    message = (
        f"is an address that only the gateway's own host reaches. These nodes read the gateway before each swap:"
        f" {', '.join(nodes)}. Set 0.0.0.0, or an address that they reach; gateway_clients limits the clients"
    )
    return [Problem("role gateway", message, "gateway_bind_address", settings.bind_address)]


def _routes(fleet: Fleet) -> str:
    return "".join(f"{name} {backend.name}\n" for name, backend in fleet.routes.items())


def _engine_keys(fleet: Fleet) -> str:
    return "".join(f"{backend.name} {key}\n" for backend in fleet.backends if (key := _engine_key(backend)))


def _marks(fleet: Fleet) -> str:
    """The lines of marks.map: the mark of the key that a set's engines get, by the path under which nodes read the
    set."""
    sets = {backend.name.removeprefix(SET): _engine_key(backend) for backend in fleet.backends if backend.own}
    return "".join(f"{SETS_PATH}{name} {mark(key)}\n" for name, key in sets.items() if key)


def _wrong_tasks(settings: Settings, fleet: Fleet) -> str:
    """The lines of wrong_tasks.map. If a backend's tasks are unknown, or a path is no task's, the engine decides."""
    by_task = adapters.get().paths
    lines = []
    for backend in fleet.backends:
        own = [path for task in backend.tasks for path in by_task.get(task, ())]
        paths = ", ".join(dict.fromkeys(path for path in own if path in settings.paths)) or "none of this gateway"
        noun = "task is" if len(backend.tasks) == 1 else "tasks are"
        text = f"Its {noun} {', '.join(backend.tasks)}. Paths: {paths}"
        wrong = [path for path in settings.paths if path in ENGINE_PATHS and path not in own]
        lines += [f"{backend.name}|{path} {text}\n" for path in wrong if backend.tasks]
    return "".join(lines)


def _several(fleet: Fleet) -> str:
    """The lines of several.map. The inventory's adapters count as well: an engine may have them before the next run."""
    return "".join(
        f"{backend.name} 1\n"
        for backend in fleet.backends
        if any(replica.adapters or replica.declared_adapters for replica in backend.replicas)
    )


def _agents(fleet: Fleet) -> str:
    """The lines of agents.txt, for gateway.lua: the agent's address and the words of each server that needs them."""
    return "".join(
        f"{backend.name}/{server.server} {server.agent_address or server.address} {server.words}\n"
        for backend in fleet.backends
        if backend.own
        for replica in backend.replicas
        for server in filter(None, (replica, replica.next, replica.bridge))
        if server.agent_address or server.words
    )


def _files(settings: Settings, fleet: Fleet) -> dict[str, str]:
    names = list(fleet.routes)
    models = [{"id": name, "object": "model", "created": 0, "owned_by": "inference"} for name in names]
    # The names go into JSON within a log-format, in which % has a meaning.
    known = json.dumps(", ".join(names) or "none")[1:-1].replace("%", "%%")
    files = {
        "gateway.lua": LUA.read_text(encoding="utf-8"),
        DEATHS_LUA: DEATHS.read_text(encoding="utf-8"),
        "agents.txt": _agents(fleet),
        STATES_AWK: AWK.read_text(encoding="utf-8"),
        TOO_LARGE: too_large(settings.body_mib).body,
        AUDIO_TOO_LARGE: too_large(limit_mib(settings, fleet), "request with audio").body,
        "models.json": json.dumps({"object": "list", "data": models}),
        "unknown-model.json": UNKNOWN_MODEL.body.replace("{known}", known),
    }
    if settings.clients:
        files["clients.acl"] = "".join(f"{client}\n" for client in settings.clients)
    return files
