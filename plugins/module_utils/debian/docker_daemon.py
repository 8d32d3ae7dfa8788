# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merges and checks Docker's daemon.json, and finds whether a change needs a restart. Private to the collection.

Pure. The module ``docker_daemon`` reads and writes files, and calls the daemon.
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
from ..core.problems import is_integer
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
"""Keys that every supported daemon (20.10 and later) reloads on SIGHUP.

Source: ``func (daemon *Daemon) Reload`` in moby's daemon/reload.go and reload_unix.go. ``features`` is not included:
the daemon reloads the dictionary, but registers its CDI driver only at the start.
"""

ENVIRONMENT = "environment"
"""Stands for the proxy environment among the keys that need a restart. daemon.json has no key of this name."""

NEEDS_ROOT = "dockerd needs to be started with root"
"""The error of an unprivileged daemon that has accepted its configuration (20.10 and later)."""

LOG_OPTIONS: Mapping[str, frozenset[str]] = {
    "json-file": frozenset({"max-size", "max-file", "compress", "labels", "labels-regex", "env", "env-regex", "tag"}),
    "local": frozenset({"max-size", "max-file", "compress"}),
    "journald": frozenset({"labels", "labels-regex", "env", "env-regex", "tag"}),
}
"""Options of the usual log drivers. With other options, the daemon does not start. Source: ValidateLogOpt of each
driver.

The driver `none` is not included, since the daemon accepts any option with it (moby's daemon/logger/factory.go)."""

COMMON_LOG_OPTIONS = frozenset(
    {"mode", "max-buffer-size", "cache-disabled", "cache-max-file", "cache-max-size", "cache-compress"}
)
"""Options that the daemon accepts for any driver. Source: moby's daemon/logger/factory.go and loggerutils/cache."""

SIZE = re.compile(r"\d+(\.\d+)?\s?([kmgtp]i?b?|b)?", re.IGNORECASE)


@dataclass(frozen=True)
class Snapshot:
    """The configuration that the running daemon has loaded, and a digest of its proxy environment."""

    config: Mapping[str, Any]
    environment: str


@dataclass(frozen=True)
class State:
    """The state between runs.

    ``owned`` has the paths of the keys that this collection has set. ``loaded`` is the configuration that the running
    daemon has loaded, kept only while it differs from the file. ``invocation`` is systemd's id of this daemon's
    invocation.
    """

    owned: tuple[tuple[str, ...], ...] = ()
    invocation: str = ""
    loaded: Snapshot | None = None

    def dump(self) -> str:
        """The text of the state file."""
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
    """Keys that the running daemon has not loaded, by the action that loads them."""

    reload: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.reload or self.restart)


@dataclass(frozen=True)
class Merge:
    """The configuration to write, and the paths of the keys that this collection sets."""

    config: dict[str, Any]
    owned: tuple[tuple[str, ...], ...] = field(default=())


def parse(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON file with an object. An empty file is an empty object.

    Raises ServiceError for invalid JSON (with line and column), a duplicate key, or another type of value.
    """
    if not text.strip():
        return {}

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _value in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ServiceError(
                f"{where}: key {', '.join(map(repr, twice))} occurs more than once, and the daemon uses the last one. "
                "Remove the wrong one. Nothing was changed."
            )
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        line = lines[min(error.lineno, len(lines)) - 1].strip()
        raise ServiceError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}; "
            f"the line is {line[:120]!r}. Repair the file, or move it away to use only the declared keys. "
            "Nothing was changed."
        ) from error
    except (RecursionError, ValueError) as error:
        raise ServiceError(f"{where}: not usable JSON: {error}. Repair the file. Nothing was changed.") from error
    if not isinstance(data, dict):
        raise ServiceError(
            f"{where}: contains a {type(data).__name__}, but the daemon needs an object, such as {{}}. Repair the file."
            " Nothing was changed."
        )
    return data


def render(config: Mapping[str, Any]) -> str:
    """The text of daemon.json. It is sorted, so that the same configuration always gives the same file."""
    return json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON. A comparison in Python would treat 1 and true as equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def paths(config: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all values. A list or an empty object counts as one value."""
    found: list[tuple[str, ...]] = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found += paths(value, (*prefix, str(key)))
        else:
            found.append((*prefix, str(key)))
    return found


def merge(existing: Mapping[str, Any], declared: Mapping[str, Any], owned: Iterable[Sequence[str]] = ()) -> Merge:
    """Set the declared values in ``existing``, and remove owned values that are no longer declared.

    All other values stay. Objects are merged key by key, so that runtimes of other origin stay.
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
    # A declared empty object must exist, but does not remove other keys in it.
    if not (same(value, {}) and isinstance(level.get(last), dict)):
        level[last] = json.loads(json.dumps(value))


def _remove(config: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove a value, and the enclosing objects that become empty."""
    levels: list[dict[str, Any]] = [config]
    for key in path[:-1]:
        below = levels[-1].get(key)
        if not isinstance(below, dict):
            return
        levels.append(below)
    if path[-1] not in levels[-1]:
        return
    # Another program or person has replaced our value by an object: the object stays.
    if isinstance(levels[-1][path[-1]], dict) and levels[-1][path[-1]]:
        return
    del levels[-1][path[-1]]
    for level, key in zip(reversed(levels[:-1]), reversed(path[:-1]), strict=True):
        if level[key]:
            return
        del level[key]


def pending(loaded: Snapshot, config: Mapping[str, Any], environment: str) -> Pending:
    """The keys that the running daemon has not loaded.

    A removed key needs a restart even if a change of it does not: on SIGHUP, the daemon reads only the present keys,
    and keeps the old value of a removed key.
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
    """The daemon's loaded configuration after a reload of these keys."""
    return Snapshot({**loaded.config, **{key: config[key] for key in keys}}, loaded.environment)


def load_state(text: str, where: str) -> State:
    """Parse the state file. An empty text stands for the first run. Raises ServiceError."""
    data = parse(text, where)
    if not data:
        return State()
    if data.get("schema") != SCHEMA:
        raise ServiceError(
            f"{where}: has schema {data.get('schema')!r}, but this version of the collection reads schema {SCHEMA}. "
            "Use the version that wrote the file, or remove the file: keys that are no longer declared then stay."
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
    """Problems that the daemon's own check does not find, but that would keep it from starting at the next boot."""
    return [*_mirror_problems(config), *_pool_problems(config), *_log_problems(config)]


def _items(config: Mapping[str, Any], key: str) -> list[Any]:
    value = config.get(key)
    return value if isinstance(value, list) else []


def _mirror_problems(config: Mapping[str, Any]) -> list[str]:
    return [
        f"registry-mirrors: {url!r} is not an image registry's address: use http://HOST[:PORT] or https://HOST[:PORT]"
        for url in _items(config, "registry-mirrors")
        if not re.fullmatch(r"https?://[^/@?#\s]+/?", str(url))
    ]


def _pool_problems(config: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for pool in _items(config, "default-address-pools"):
        base, size = (pool.get("base"), pool.get("size")) if isinstance(pool, Mapping) else (None, None)
        try:
            network = ipaddress.ip_network(str(base), strict=False)
        except ValueError as error:
            found.append(
                f"default-address-pools: {pool!r}: base is not a network ({error}): use a form like 10.200.0.0/16"
            )
            continue
        if not is_integer(size) or not network.prefixlen <= size <= network.max_prefixlen:
            found.append(
                f"default-address-pools: {pool!r}: size {size!r} must be the prefix length of one network in the pool, "
                f"{network.prefixlen} to {network.max_prefixlen}"
            )
    return found


def _log_problems(config: Mapping[str, Any]) -> list[str]:
    driver = config.get("log-driver", "json-file")
    options = config.get("log-opts", {})
    if not isinstance(driver, str) or driver not in LOG_OPTIONS or not isinstance(options, Mapping):
        return []
    allowed = LOG_OPTIONS[driver] | COMMON_LOG_OPTIONS
    known = ", ".join(sorted(LOG_OPTIONS[driver]))
    found = [
        f"log-opts: {key!r} is not an option of the log driver {driver!r}, which has: {known}"
        for key in sorted(set(options) - allowed)
    ]
    size = options.get("max-size")
    if isinstance(size, str) and "max-size" in allowed and size != "-1" and not SIZE.fullmatch(size):
        found.append(f"log-opts: max-size {size!r} is not a size: use for example 50m")
    count = options.get("max-file")
    if isinstance(count, str) and "max-file" in allowed and not re.fullmatch(r"[1-9]\d*", count):
        found.append(f"log-opts: max-file {count!r} is not a number of files: use 1 or more")
    return found


def data_root(config: Mapping[str, Any]) -> str:
    """The directory of the daemon's images and containers. ``graph`` is the old name of the key."""
    return str(config.get("data-root") or config.get("graph") or DOCKER_DATA_ROOT).rstrip("/") or "/"


def environment_text(environment: Mapping[str, str]) -> str:
    """The text of a file for systemd's EnvironmentFile=. Raises ServiceError for invalid names and values."""
    lines = []
    for name in sorted(environment):
        value = environment[name]
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or re.search(r"[\x00-\x1f\x7f]", value):
            raise ServiceError(
                f"environment: {name!r} has a name or a value that is not allowed: use letters, digits and _ for the"
                " name, and a value without control characters"
            )
        escaped = re.sub(r'(["\\`$])', r"\\\1", value)
        lines.append(f'{name}="{escaped}"\n')
    return "".join(lines)


def digest(text: str) -> str:
    """A checksum that identifies a text without storing the text."""
    return hashlib.sha256(text.encode()).hexdigest()


def daemon_flags(exec_start: str, variables: Mapping[str, str]) -> list[str]:
    """The daemon's flags in its unit, from the output of ``systemctl show --property=ExecStart``.

    The check needs them: a key that is both in the file and in the flags is an error. Variables such as ``$NAME`` are
    replaced as by systemd. ``--config-file`` and ``--validate`` are left out, because the check sets them itself.
    Raises ServiceError.
    """
    match = re.search(r"argv\[\]=(.*?) ; ", exec_start)
    words: list[str] = []
    for word in match.group(1).split()[1:] if match else []:
        if re.match(r"^\$[A-Za-z_]\w*$", word):
            try:
                words += shlex.split(variables.get(word[1:], ""))
            except ValueError as error:
                raise ServiceError(
                    f"the value of {word[1:]} in an environment file of Docker's unit has a quote without an end."
                    " Correct the file. Nothing was changed."
                ) from error
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found.group(1), ""), word))
    flags: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith(("--config-file", "--validate")):
            flags.append(word)
        skip = word == "--config-file"
    return flags


def validation_result(returncode: int, output: str) -> tuple[bool, str]:
    """Whether the daemon accepted the file, and its errors. For a run with ``--validate`` or without privileges."""
    if returncode == 0 or NEEDS_ROOT in output:
        return True, ""
    words = [line for line in output.splitlines() if line.strip() and "level=info" not in line]
    return False, "\n".join(words) or f"exit code {returncode} without a message"
