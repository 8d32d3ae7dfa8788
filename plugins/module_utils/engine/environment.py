# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the environment file of an instance, and masks its secrets in texts. Private to the collection."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core import files
from ..core.paths import Paths
from ..core.secrets import SECRET_LENGTH
from . import adapters
from .adapters import ENGINES
from .adapters.contract import Serving

ENGINE_CONFIG = "INFERENCE_ENGINE_CONFIG"
"""The variable with the engine's configuration file, in JSON. The engine takes several keys from that file or from its
command line, which every user of the node can read."""

_PUBLIC = frozenset({"HOME", "USER"}).union(*(engine.variables.public for engine in ENGINES.values()))
"""Variables of environment files whose long values are not secret."""

_TOKENS = re.compile(
    r"(?i)(\bbearer\s+|--api-key\s+|\bapi[_-]?key['\"]?\s*[:=]\s*\[?['\"]?)[^\s'\",\]]+|\bhf_[a-z0-9]{16,}"
)


_OURS: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "engines are offline, and the store fetches models",
    "HOME": "it is the instance's compile cache, below vllm_cache_path",
    "USER": "an instance has the key user",
    ENGINE_CONFIG: "use vllm_api_key and vllm_accepted_keys",
    **dict.fromkeys(("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), "use gpus of the instance"),
}
"""Variables that the collection sets in containers, or that would undo what it sets, and what to use instead."""

RANKS = (
    "would make the engine wait for ranks outside its container: use data-parallel-size in the model's entry, and an "
    "instance of the same name on each further node"
)
"""Why a site cannot set the engine's variables for ranks, and what to use instead."""


def ours() -> frozenset[str]:
    """The variables that an instance cannot set."""
    engine = adapters.get()
    nowhere = Serving("", 0, start_timeout=0, drain_timeout=0, cache_path="")
    return frozenset({*_OURS, *engine.environment(nowhere), engine.variables.api_key, *engine.variables.ranks})


def refusal(name: str) -> str:
    """Why an instance cannot set a variable of ours(), and what to use instead."""
    if name in adapters.get().variables.ranks:
        return RANKS
    other = "remove it; its value is fixed, or vllm_start_timeout or vllm_cache_path decides it"
    use = "use vllm_api_key" if name == adapters.get().variables.api_key else _OURS.get(name, other)
    return f"is set by the role: {use}"


def read(paths: Paths, name: str) -> dict[str, str]:
    """The environment of the active release; empty if there is no file. Raises OSError."""
    return read_file(paths.env(name))


def read_file(path: Path) -> dict[str, str]:
    """The environment in a file; empty if there is no file. In a damaged file, every line with = counts: damage
    must not prevent the repair of the file. Raises OSError."""
    text = files.text(path) or ""
    return dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)


def keys(environment: Mapping[str, str]) -> list[str]:
    """The API keys that an engine accepts; empty where the engine requires none."""
    for engine in ENGINES.values():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return [str(key) for key in json.loads(environment[ENGINE_CONFIG])[engine.config_file.api_keys]]
    return [key] if (key := api_key(environment)) else []


def api_key(environment: Mapping[str, str]) -> str:
    """The API key for requests to an engine; empty where the engine requires none."""
    names = (engine.variables.api_key for engine in ENGINES.values())
    return next((environment[name] for name in names if environment.get(name)), "")


def mark(key: str) -> str:
    """8 digits of a digest, by which people and programs tell keys apart."""
    return hashlib.sha256(f"baremetal.inference\0{key}".encode()).hexdigest()[:8]


def secrets(environment: dict[str, str]) -> list[str]:
    """The values that may be secret: the API keys, and all long values that are neither public nor a number."""
    long = (value for key, value in environment.items() if key not in _PUBLIC and len(value) >= SECRET_LENGTH)
    return list(dict.fromkeys([*keys(environment), *(value for value in long if not value.isdigit())]))


def mask(text: str, values: Iterable[str]) -> str:
    """Replace secret values, and words that look like tokens, by asterisks."""
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = text.replace(value, "***")
    return _TOKENS.sub(lambda match: f"{match.group(1) or ''}***", text)
