# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of a release that an old version of the collection wrote. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .inventory import bridged_instance

_ENGINE = "--shutdown-timeout"
"""The last flag that the collection itself gives to an engine. The flags of the model registry follow its value."""

_MOUNT = re.compile(r"--mount=type=bind,source=([^,]+),target=[^,]+?(,readonly)?")


def data(release: Mapping[str, Any]) -> dict[str, Any]:
    """`flags`, `arguments` and `settings` of release.json, read from its argv. Raises ValueError.

    Releases written before 0.2.0 have argv alone, and a node runs such a release until the next update.
    """
    engine, container = release["engine_argv"], release["container_argv"]
    try:
        arguments = engine[engine.index(_ENGINE) + 2 :]
        return {"flags": _flags(arguments), "arguments": arguments, "settings": _settings(release, container)}
    except (AttributeError, KeyError, IndexError, StopIteration, TypeError, ValueError) as error:
        raise ValueError(f"has an argv that this version does not understand ({error!r})") from error


def _flags(argv: Sequence[str]) -> dict[str, Any]:
    """The flags of a command line, as a model registry entry has them."""
    flags: dict[str, Any] = {}
    for position, word in enumerate(argv):
        if not word.startswith("--"):
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        following = argv[position + 1] if position + 1 < len(argv) else "--"
        if not equals and following.startswith("--"):
            flags[name.removeprefix("no-")] = not name.startswith("no-")
        else:
            flags[name] = value if equals else following
    return flags


def _settings(release: Mapping[str, Any], argv: Sequence[str]) -> dict[str, Any]:
    def values(option: str) -> list[str]:
        return [word.removeprefix(f"--{option}=") for word in argv if word.startswith(f"--{option}=")]

    uid, gid = values("user")[0].split(":")
    mounts = [match.groups() for word in argv if (match := _MOUNT.fullmatch(word))]
    roots = [source for source, readonly in mounts if readonly and source != release["model_path"]]
    cache = next(source for source, readonly in mounts if not readonly)
    name = release["instance"]
    return {
        "address": release["address"],
        "uid": int(uid),
        "gid": int(gid),
        "store_path": roots[0],
        "fast_path": (roots[1:] or [""])[0],
        "cache_path": cache.removesuffix(f"/{bridged_instance(name) or name}"),
        "start_timeout": release["start_timeout"],
        "drain_timeout": release["drain_timeout"],
        "shm_size": values("shm-size")[0],
        "memory": (values("memory") or [""])[0],
        "pids_limit": int(values("pids-limit")[0]),
        "ulimits": dict(value.split("=", 1) for value in values("ulimit")),
        "cap_add": values("cap-add"),
        "gpu_request": "runtime" if "--runtime=nvidia" in argv else "cdi",
    }
