# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the gateway, checked. They are the role's variables. Private to the collection."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..core.problems import Problem, is_integer
from ..engine import adapters
from ..models.registry import routing
from ..models.registry.routing import Routing
from .names import PREFIX

SESSION_HEADER = "X-Session-ID"

AFFINITIES: Mapping[str, Routing] = {
    "none": Routing(),
    "session": Routing((routing.HEADER,), SESSION_HEADER),
    "prefix": Routing((routing.HEADER, routing.PREFIX), SESSION_HEADER),
}
"""The values of gateway_affinity: the routing of models whose entry has no key `routing`."""

PATH = re.compile(r"/v1/[a-z0-9_/-]{1,100}")

ENGINE_PATHS = frozenset(path for paths in adapters.get().paths.values() for path in paths)
"""The paths of tasks. Some are not below /v1/."""

MODELS_PATH = "/v1/models"

BODY_MIB = (1, 32)
"""The least and the greatest limit of a body, in MiB. Each request has a buffer of the limit's size. vLLM itself
accepts 32 MiB (VLLM_HTTP_MAX_REQUEST_BODY_SIZE)."""


@dataclass(frozen=True)
class Settings:
    """The role's variables of the same names. Times are in seconds."""

    bind_address: str
    port: int
    metrics_port: int
    tls: bool
    clients: tuple[str, ...]
    paths: tuple[str, ...]
    anonymous: bool
    body_mib: int
    audio_mib: int
    requests_per_minute: int
    concurrent_requests: int
    engine_requests: int
    queue_requests: int
    queue_seconds: int
    generation_seconds: int
    hold_seconds: int
    slow_start_seconds: int
    retry_sent: bool
    refuse_deaths: int
    """A key with requests in flight at so many deaths within an hour is refused; 0 for no refusal."""
    refuse_seconds: int
    affinity: str
    agent_port: int
    max_connections: int
    name: str
    """The gateway's name in the inventory. The nodes' agents record checks by this name."""

    @property
    def routing(self) -> Routing:
        """The routing of models whose entry has no key `routing`."""
        return AFFINITIES[self.affinity]


NUMBERS: Mapping[str, tuple[int, int]] = {
    "port": (1, 65535),
    "metrics_port": (1, 65535),
    "agent_port": (0, 65535),
    "body_mib": BODY_MIB,
    "audio_mib": BODY_MIB,
    "requests_per_minute": (0, 10**6),
    "concurrent_requests": (0, 10**6),
    "engine_requests": (1, 10**5),
    "queue_requests": (1, 10**5),
    "queue_seconds": (1, 3600),
    "generation_seconds": (10, 86400),
    "hold_seconds": (0, 3600),
    # An update waits for a full share a little longer than this (node/swap/serving.py).
    "slow_start_seconds": (0, 180),
    "refuse_deaths": (0, 50),
    "refuse_seconds": (1, 86400),
    "max_connections": (16, 10**6),
}
"""The least and the greatest value of each number."""


def absent_settings(raw: Mapping[str, Any]) -> list[Problem]:
    """A problem for each missing setting. Without it, read_settings() would fail."""
    names = [field.name for field in fields(Settings)]
    return [Problem("role gateway", "is not set", PREFIX + name) for name in names if name not in raw]


def read_settings(raw: Mapping[str, Any]) -> tuple[Settings, list[Problem]]:
    """The settings, and every mistake in them. Settings with mistakes must not be used."""
    problems: list[Problem] = []

    def refuse(name: str, message: str, value: object) -> None:
        problems.append(Problem("role gateway", message, PREFIX + name, value))

    for name, (least, most) in NUMBERS.items():
        if not is_integer(raw[name]) or not least <= raw[name] <= most:
            refuse(name, f"must be a whole number from {least} to {most}", raw[name])
    if raw["port"] == raw["metrics_port"]:
        refuse("metrics_port", "is also gateway_port: choose another port", raw["metrics_port"])
    try:
        ipaddress.ip_address(raw["bind_address"])
    except ValueError:
        refuse(
            "bind_address", "must be an address of the gateway, 0.0.0.0, or :: for both families", raw["bind_address"]
        )
    for client in raw["clients"]:
        try:
            ipaddress.ip_network(client)
        except ValueError:
            refuse("clients", "must be an address, or a network in which all bits after the prefix are 0", client)
    for path in raw["paths"]:
        if not (PATH.fullmatch(str(path)) or str(path) in ENGINE_PATHS) or path == MODELS_PATH:
            others = ", ".join(sorted(each for each in ENGINE_PATHS if not PATH.fullmatch(each)))
            refuse(
                "paths",
                f"must be a path below /v1/ for requests with a model, or one of {others}; and not {MODELS_PATH}",
                path,
            )
    if not raw["paths"]:
        refuse("paths", "is empty, so no request would pass: name at least one path below /v1/", None)
    if raw["affinity"] not in AFFINITIES:
        refuse("affinity", f"must be one of {', '.join(AFFINITIES)}", raw["affinity"])
    known = {field.name: raw[field.name] for field in fields(Settings)}
    known.update({name: tuple(map(str, raw[name])) for name in ("clients", "paths")})
    return Settings(**known), problems
