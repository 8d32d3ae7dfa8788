# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the settings that the role gives to every container. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.problems import Problem, nearest
from ..core.secrets import ADVICE, SECRET_LENGTH, is_placeholder
from . import adapters
from .environment import RANKS
from .release import GPU_REQUESTS, Settings

ULIMITS = frozenset(
    {
        *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio"),
        *("rttime", "sigpending", "stack"),
    }
)
"""Names that Docker accepts (go-units, ulimit.go)."""

_SIZE = re.compile(r"\d{1,18}[bkmg]?", re.IGNORECASE)
_ULIMIT = re.compile(r"(?:-1|\d+)(?::(?:-1|\d+))?")
_CAPABILITY = re.compile(r"(?:CAP_)?[A-Z]+(?:_[A-Z]+)*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of an environment variable."""

BY_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")
"""An image that is the same on every node."""

# A comma would end the value within --mount.
_PATH = re.compile(r"/[^,\n]*[^/,\n]")


def read_settings(given: Mapping[str, Any], uid: int, gid: int, *environments: Mapping[str, Any]) -> Settings:
    """The settings of every container. A value of None means the default. Later environments win."""
    values = {key: value for key, value in given.items() if value is not None}
    if "ulimits" in values:
        values["ulimits"] = {name: str(value) for name, value in values["ulimits"].items()}
    environment = {str(key): str(value) for variables in environments for key, value in variables.items()}
    return Settings(**values, uid=uid, gid=gid, environment=environment)


def check_settings(settings: Mapping[str, Any]) -> list[Problem]:
    """All mistakes in the settings, by the role's variables."""
    problems: list[Problem] = []

    def refuse(key: str, message: str) -> None:
        problems.append(Problem("role vllm", message, f"vllm_{key}", settings.get(key)))

    for key in ("store_path", "cache_path"):
        if not _PATH.fullmatch(str(settings.get(key) or "")):
            refuse(key, "must be an absolute path without comma and without a slash at its end")
    fast = str(settings.get("fast_path") or "")
    if fast and not _PATH.fullmatch(fast):
        refuse("fast_path", "must be an absolute path without comma and without a slash at its end, or empty")
    for key in ("start_timeout", "drain_timeout"):
        if not isinstance(settings.get(key), int) or settings[key] < 1:
            refuse(key, "must be a number of seconds, 1 or more")
    if not isinstance(settings.get("pids_limit"), int) or settings["pids_limit"] < 64:
        refuse("pids_limit", "must be 64 or more: an engine of one process has about 100 threads")
    if mistake := size_mistake(settings.get("shm_size") or ""):
        refuse("shm_size", mistake)
    if settings.get("memory") and (mistake := size_mistake(settings["memory"])):
        refuse("memory", f"{mistake}, 0 for no limit, or empty for the default")
    for mistake in ulimit_mistakes(settings.get("ulimits") or {}):
        refuse("ulimits", mistake)
    if settings.get("gpu_request", GPU_REQUESTS[0]) not in GPU_REQUESTS:
        refuse("gpu_request", f"must be one of {', '.join(GPU_REQUESTS)}")
    for capability in settings.get("cap_add") or []:
        if not _CAPABILITY.fullmatch(str(capability)):
            refuse("cap_add", f"{capability!r} is no capability: write it like IPC_LOCK")
    return problems


def size_mistake(size: object) -> str:
    """The mistake in a size; empty without one."""
    return "" if _SIZE.fullmatch(str(size)) else "must be a size as Docker writes it, such as 16g or 200g"


def ulimit_mistakes(ulimits: Mapping[str, Any]) -> list[str]:
    """All mistakes in limits by name."""
    found = []
    for name, value in ulimits.items():
        if name not in ULIMITS:
            found.append(f"{name!r} is no limit that Docker knows: {nearest(str(name), ULIMITS)}")
        elif not _ULIMIT.fullmatch(str(value)):
            found.append(f"{name}: must be a number, -1 for none, or SOFT:HARD, found {value!r}")
    return found


def check_environment(environment: Mapping[str, Any], secrets: Mapping[str, Any]) -> list[Problem]:
    """All mistakes in the environment. No message shows a value, which may be a secret."""
    problems = []
    for variable, values in (("vllm_environment", environment), ("vllm_secret_environment", secrets)):
        for key, value in values.items():
            if not VARIABLE.fullmatch(str(key)):
                problems.append(Problem(variable, f"{key!r} is no name of an environment variable"))
            if any(character in str(value) for character in "\n\r\0"):
                problems.append(Problem(variable, "must have a value of one line", str(key)))
            if key in adapters.get().variables.ranks:
                problems.append(Problem(variable, RANKS, str(key)))
    problems += [
        Problem("vllm_secret_environment or vllm_api_key", f"must have {SECRET_LENGTH} characters or more", str(key))
        for key, value in secrets.items()
        if len(str(value)) < SECRET_LENGTH
    ]
    problems += [
        Problem("vllm_secret_environment or vllm_api_key", f"is a placeholder: {ADVICE}", str(key))
        for key, value in secrets.items()
        if is_placeholder(value)
    ]
    return problems
