# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: merging, checking, and what a change asks of the daemon. Private to the collection.

Pure: dictionaries and texts in, values and errors out. The module ``docker_daemon`` reads, writes and calls the daemon.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.defaults import DOCKER_DATA_ROOT
from .service_files import ServiceError

SCHEMA = 1

RELOADABLE = frozenset(
    {
        "authorization-plugins",
        "debug",
        "default-runtime",
        "default-shm-size",
        "insecure-registries",
        "labels",
        "live-restore",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "max-download-attempts",
        "registry-mirrors",
        "runtimes",
        "shutdown-timeout",
    }
)
"""Keys that every supported daemon (20.10 and later) takes over on SIGHUP.

Source: ``func (daemon *Daemon) Reload`` in moby's daemon/reload.go and reload_unix.go. ``features`` is not among them:
the daemon reloads the dictionary, but registers its CDI driver at the start only.
"""

ENVIRONMENT = "environment"
"""How a changed proxy environment is called among the keys that need a restart; daemon.json has no key of this name."""

NEEDS_ROOT = "dockerd needs to be started with root"
"""What a daemon without privileges says once it has accepted its configuration (20.10 and later)."""

LOG_OPTIONS: Mapping[str, frozenset[str]] = {
    "json-file": frozenset({"max-size", "max-file", "compress", "labels", "labels-regex", "env", "env-regex", "tag"}),
    "local": frozenset({"max-size", "max-file", "compress"}),
    "journald": frozenset({"labels", "labels-regex", "env", "env-regex", "tag"}),
    "none": frozenset(),
}
"""Options of the usual log drivers; the daemon does not start with any other. Source: each driver's ValidateLogOpt."""

COMMON_LOG_OPTIONS = frozenset(
    {"mode", "max-buffer-size", "cache-disabled", "cache-max-file", "cache-max-size", "cache-compress"}
)
"""Options that the daemon accepts for any driver. Source: moby's daemon/logger/factory.go and loggerutils/cache."""

SIZE = re.compile(r"^\d+(\.\d+)?\s?([kmgtp]i?b?|b)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Snapshot:
    """What the running daemon works with: the configuration it has loaded, and a digest of its proxy environment."""

    config: Mapping[str, Any]
    environment: str


@dataclass(frozen=True)
class State:
    """What is remembered between runs.

    ``owned`` are the paths of the keys that we set. ``loaded`` is what the daemon with the systemd invocation
    ``invocation`` has really loaded, as long as that differs from the file.
    """

    owned: tuple[tuple[str, ...], ...] = ()
    invocation: str = ""
    loaded: Snapshot | None = None

    def dump(self) -> str:
        """The state file's text."""
        data: dict[str, Any] = {"schema": SCHEMA, "owned": [list(path) for path in self.owned]}
        if self.loaded is not None:
            data["loaded"] = {
                "invocation": self.invocation,
                "config": self.loaded.config,
                "environment": self.loaded.environment,
            }
        return json.dumps(data, indent=2, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Pending:
    """Keys in which the running daemon differs from what it should run with, by what makes it take them over."""

    reload: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.reload or self.restart)


@dataclass(frozen=True)
class Merge:
    """The configuration to write, and the paths of it that are ours from now on."""

    config: dict[str, Any]
    owned: tuple[tuple[str, ...], ...] = field(default=())


def parse(text: str, where: str) -> dict[str, Any]:
    """The object in a JSON file; an empty file is an empty object.

    Raises ServiceError with line and column, for a key that stands twice, and when the top level is no object.
    """
    if not text.strip():
        return {}

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _value in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ServiceError(
                f"{where}: key {', '.join(map(repr, twice))} is there more than once, and the daemon takes the last. "
                "Remove the one that is not meant. Nothing was changed."
            )
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        line = lines[min(error.lineno, len(lines)) - 1].strip()
        raise ServiceError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}; "
            f"the line reads {line[:120]!r}. Repair the file, or move it away to start from the declared keys alone. "
            "Nothing was changed."
        ) from error
    except (RecursionError, ValueError) as error:
        raise ServiceError(f"{where}: not usable JSON: {error}. Nothing was changed.") from error
    if not isinstance(data, dict):
        raise ServiceError(
            f"{where}: holds a {type(data).__name__}; the daemon wants an object of keys, as {{}}. Nothing was changed."
        )
    return data


def render(config: Mapping[str, Any]) -> str:
    """The text of daemon.json: sorted, so that the same configuration is always the same file."""
    return json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; in Python alone, 1 equals true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def paths(config: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all values; a list is one value, and so is an empty object."""
    found: list[tuple[str, ...]] = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found += paths(value, (*prefix, str(key)))
        else:
            found.append((*prefix, str(key)))
    return found


def merge(existing: Mapping[str, Any], declared: Mapping[str, Any], owned: Iterable[Sequence[str]] = ()) -> Merge:
    """``existing`` with the declared values set and with those removed that were ours and are no longer declared.

    Nothing else is touched: objects are merged key by key, so that a foreign runtime stays beside ours.
    """
    config: dict[str, Any] = json.loads(json.dumps(existing))
    wanted = paths(declared)
    for path in owned:
        _remove(config, tuple(path))
    for path in wanted:
        _set(config, path, _get(declared, path))
    return Merge(config, tuple(sorted(wanted)))


def _get(config: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = config
    for key in path:
        value = value[key]
    return value


def _set(config: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    level = config
    for key in path[:-1]:
        if not isinstance(level.get(key), dict):
            level[key] = {}
        level = level[key]
    last = path[-1]
    # A declared empty object asks for the object, not for the loss of what others keep in it.
    if not (same(value, {}) and isinstance(level.get(last), dict)):
        level[last] = json.loads(json.dumps(value))


def _remove(config: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove the value, and the objects around it that it leaves empty."""
    levels: list[dict[str, Any]] = [config]
    for key in path[:-1]:
        below = levels[-1].get(key)
        if not isinstance(below, dict):
            return
        levels.append(below)
    if path[-1] not in levels[-1]:
        return
    # Our value has become an object of others: it is not ours any more.
    if isinstance(levels[-1][path[-1]], dict) and levels[-1][path[-1]]:
        return
    del levels[-1][path[-1]]
    for level, key in zip(reversed(levels[:-1]), reversed(path[:-1]), strict=True):
        if level[key]:
            return
        del level[key]


def pending(loaded: Snapshot, config: Mapping[str, Any], environment: str) -> Pending:
    """What separates the running daemon from the configuration.

    A key that is gone needs a restart even where its change would not: on SIGHUP the daemon looks only at keys that
    are there, and keeps the old value of one that is not.
    """
    reload: list[str] = []
    restart: list[str] = []
    for key in sorted({*loaded.config, *config}):
        if key in loaded.config and key in config and same(loaded.config[key], config[key]):
            continue
        (reload if key in config and key in RELOADABLE else restart).append(key)
    if loaded.environment != environment:
        restart.append(ENVIRONMENT)
    return Pending(tuple(reload), tuple(restart))


def after_reload(loaded: Snapshot, config: Mapping[str, Any], keys: Iterable[str]) -> Snapshot:
    """What the daemon works with once it has reloaded these keys."""
    return Snapshot({**loaded.config, **{key: config[key] for key in keys}}, loaded.environment)


def load_state(text: str, where: str) -> State:
    """The state file's content; an absent one (an empty text) is a first run. Raises ServiceError."""
    data = parse(text, where)
    if not data:
        return State()
    if data.get("schema") != SCHEMA:
        raise ServiceError(
            f"{where}: has schema {data.get('schema')!r}, this version reads schema {SCHEMA}: another version of the "
            "collection wrote it. Use that one, or remove the file: keys that are no longer declared then stay."
        )
    try:
        owned = tuple(tuple(str(key) for key in path) for path in data["owned"])
        loaded = data.get("loaded")
        if loaded is None:
            return State(owned)
        return State(owned, str(loaded["invocation"]), Snapshot(dict(loaded["config"]), str(loaded["environment"])))
    except (KeyError, TypeError, ValueError) as error:
        raise ServiceError(
            f"{where}: is damaged ({error!r}). Remove it: keys of daemon.json that are no longer declared then stay."
        ) from error


def problems(config: Mapping[str, Any]) -> list[str]:
    """Values that the daemon's own check lets pass, and that would keep it from starting at the next boot."""
    return [*_mirror_problems(config), *_pool_problems(config), *_log_problems(config)]


def _items(config: Mapping[str, Any], key: str) -> list[Any]:
    value = config.get(key)
    return value if isinstance(value, list) else []


def _mirror_problems(config: Mapping[str, Any]) -> list[str]:
    return [
        f"registry-mirrors: {url!r} is not a registry's address: write http://HOST[:PORT] or https://HOST[:PORT]"
        for url in _items(config, "registry-mirrors")
        if not re.match(r"^https?://[^/@?#\s]+/?$", str(url))
    ]


def _pool_problems(config: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for pool in _items(config, "default-address-pools"):
        base, size = (pool.get("base"), pool.get("size")) if isinstance(pool, Mapping) else (None, None)
        try:
            network = ipaddress.ip_network(str(base), strict=False)
        except ValueError as error:
            found.append(f"default-address-pools: {pool!r}: base is not a network ({error}): write 10.200.0.0/16")
            continue
        if (
            isinstance(size, bool)
            or not isinstance(size, int)
            or not network.prefixlen <= size <= network.max_prefixlen
        ):
            found.append(
                f"default-address-pools: {pool!r}: size {size!r} must be the prefix length of one network in the pool, "
                f"{network.prefixlen} to {network.max_prefixlen}"
            )
    return found


def _log_problems(config: Mapping[str, Any]) -> list[str]:
    driver = config.get("log-driver", "json-file")
    options = config.get("log-opts", {})
    if driver not in LOG_OPTIONS or not isinstance(options, Mapping):
        return []
    allowed = LOG_OPTIONS[driver] | COMMON_LOG_OPTIONS
    known = ", ".join(sorted(LOG_OPTIONS[driver])) or "none"
    found = [
        f"log-opts: {key!r} is no option of the log driver {driver!r}, which knows: {known}"
        for key in sorted(set(options) - allowed)
    ]
    size = options.get("max-size")
    if isinstance(size, str) and "max-size" in allowed and size != "-1" and not SIZE.match(size):
        found.append(f"log-opts: max-size {size!r} is not a size: write for example 50m")
    count = options.get("max-file")
    if isinstance(count, str) and "max-file" in allowed and not re.match(r"^[1-9]\d*$", count):
        found.append(f"log-opts: max-file {count!r} is not a number of files: write 1 or more")
    return found


def data_root(config: Mapping[str, Any]) -> str:
    """Where the daemon keeps images and containers; ``graph`` is the old name of the key."""
    return str(config.get("data-root") or config.get("graph") or DOCKER_DATA_ROOT).rstrip("/") or "/"


def environment_text(environment: Mapping[str, str]) -> str:
    """A file for systemd's EnvironmentFile=. Raises ServiceError for what such a file cannot hold."""
    lines = []
    for name in sorted(environment):
        value = environment[name]
        if not re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", name) or re.search(r"[\x00-\x1f\x7f]", value):
            raise ServiceError(f"environment: {name!r} has a name or a value that an environment file cannot hold")
        escaped = re.sub(r'(["\\`$])', r"\\\1", value)
        lines.append(f'{name}="{escaped}"\n')
    return "".join(lines)


def digest(text: str) -> str:
    """A fingerprint by which a text is recognised without being kept."""
    return hashlib.sha256(text.encode()).hexdigest()


def daemon_flags(exec_start: str, variables: Mapping[str, str]) -> list[str]:
    """The flags that the unit starts the daemon with, of ``systemctl show --property=ExecStart``.

    They matter to the check: a key that stands in the file and among the flags is an error. ``$NAME`` is replaced as
    systemd does it; ``--config-file`` and ``--validate`` are left out, for the check gives its own.
    """
    match = re.search(r"argv\[\]=(.*?) ; ", exec_start)
    words: list[str] = []
    for word in match.group(1).split()[1:] if match else []:
        if re.match(r"^\$[A-Za-z_]\w*$", word):
            words += shlex.split(variables.get(word[1:], ""))
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found.group(1), ""), word))
    flags: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith(("--config-file", "--validate")):
            flags.append(word)
        skip = word == "--config-file"
    return flags


def verdict(returncode: int, output: str) -> tuple[bool, str]:
    """Whether the daemon accepted the file, and its words; for a run with ``--validate`` or without privileges."""
    if returncode == 0 or NEEDS_ROOT in output:
        return True, ""
    words = [line for line in output.splitlines() if line.strip() and "level=info" not in line]
    return False, "\n".join(words) or f"exit code {returncode} without a word"
