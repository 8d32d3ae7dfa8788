# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what listens on the ports of a machine, and which of these programs serve models. Private to the collection.

Reads /proc, and asks recognised programs on this machine for the names of their models. Tests give another /proc.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.addresses import in_url, is_own
from ..block_devices import Mount, read_mounts
from ..nftables import sockets
from .programs import Program, proxied, recognise
from .system import Run

CACHES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
"""Variables with the directory of a hub's cache. Source: huggingface_hub's documentation, "Environment variables"."""

ASK_SECONDS = 3.0
"""Time limit in seconds of a request to a local program."""

MOST_BYTES = 1 << 20
"""How much of an answer is read at most."""

LISTS = {"ollama": "/api/tags"}
"""The path of the list of models, for programs that are not asked at /v1/models."""

WITHOUT_LIST = ("ray", "jupyter", "triton", "open-webui")
"""Kinds of programs that are not asked for their models."""

Ask = Callable[[str, int, str], Any]
"""Reads JSON at the address and port of a listening socket, and a path. Raises OSError or ValueError."""


def ask(address: str, port: int, path: str) -> Any:
    """Read JSON at the address and port of a listening socket, and a path. Raises OSError or ValueError."""
    # No proxy of the environment: the program is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{in_url(_reached(address))}:{port}{path}", timeout=ASK_SECONDS) as answer:
            return json.loads(answer.read(MOST_BYTES))
    except http.client.HTTPException as error:
        # An engine also listens on ports that its own processes use without HTTP.
        raise ValueError(f"port {port} does not answer by HTTP: {error!r}") from error


def _reached(address: str) -> str:
    """The address at which this machine reaches a listening socket."""
    if address == "::":
        # Without an IPv6 loopback, as with disable_ipv6 of lo, a socket that also takes IPv4 is still reached.
        return "::1" if is_own("::1") else "127.0.0.1"
    return "127.0.0.1" if address == "0.0.0.0" else address


def read(proc: Path, run: Run, asking: Ask = ask) -> list[dict[str, Any]]:
    """The listening programs, sorted by port. Unknown programs on loopback are left out.

    A program with several addresses is listed once, as are unknown programs of one port.
    """
    commands = {pid: _command(proc, pid) for pid in _processes(proc)}
    programs = {pid: recognise(words) for pid, words in commands.items()}
    owners = _owners(proc, commands)
    containers = _containers(run)
    found: list[dict[str, Any]] = []
    for socket in _listening(proc, "self"):
        pid = owners.get(socket[2])
        inside = proxied(commands.get(pid, [])) if pid is not None else 0
        if inside:
            pid = _inside(proc, programs, inside) or pid
        program = programs.get(pid, Program("", "", "")) if pid is not None else Program("", "", "")
        address, port, _inode = socket
        loopback = ipaddress.ip_address(address).is_loopback
        service = {"port": port, "address": address, "pid": pid, "kind": program.kind, "program": program.name}
        if (program.kind or not loopback) and not any(_same(service, one) for one in found):
            models = _models(program.kind, address, port, asking)
            found.append({**service, **_more(proc, pid, program, containers), "models": models})
    return sorted(found, key=lambda one: (one["port"], one["kind"]))


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two sockets are of one program, or of unknown programs with one port.

    Processes of one program can have a socket each, with the same address.
    """
    if (one["port"], one["kind"]) != (other["port"], other["kind"]):
        return False
    return not one["kind"] or one["pid"] == other["pid"] or one["address"] == other["address"]


def _more(proc: Path, pid: int | None, program: Program, containers: dict[str, str]) -> dict[str, Any]:
    """Unit, container, model and the model's directory of a listening program."""
    group = _text(proc / str(pid) / "cgroup") if pid is not None else ""
    ids = [digits[:12] for digits in re.findall(r"[0-9a-f]{64}", group)]
    units = re.findall(r"/([^/\s]+\.(?:service|scope))\s*$", group, re.MULTILINE)
    unit = next((name for name in reversed(units) if not re.search(r"[0-9a-f]{64}", name)), "")
    # The machine may be a container itself. Then the id of that container comes before the machine's own units.
    own = next((containers[digits] for digits in reversed(ids) if digits in containers), "")
    container = own or ("" if unit or not ids else ids[-1])
    return {
        "unit": "" if container else unit,
        "container": container,
        "model": program.model,
        "model_path": _directory(proc, pid, program.model) if program.kind and pid is not None else "",
    }


def _models(kind: str, address: str, port: int, asking: Ask) -> list[str]:
    """The models that a program reports; empty if it does not answer, or requires a key."""
    if not kind or kind in WITHOUT_LIST:
        return []
    try:
        answer = asking(address, port, LISTS.get(kind, "/v1/models"))
    except (OSError, ValueError):
        return []
    rows = (answer.get("data") or answer.get("models")) if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    return [str(name) for name in names if name]


def _directory(proc: Path, pid: int, model: str) -> str:
    """The directory of a process's model as this machine sees it; empty if there is none."""
    inside = model if model.startswith("/") else _cached(proc, pid, model)
    return _outside(proc, pid, inside) if inside else ""


def _cached(proc: Path, pid: int, model: str) -> str:
    """The directory of a hub's model in the cache of a process; empty if the cache does not have it."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        return ""
    variables = dict(word.partition("=")[::2] for word in _text(proc / str(pid) / "environ").split("\0") if "=" in word)
    home = variables.get("HF_HOME") or f"{variables.get('HOME') or '/root'}/.cache/huggingface"
    cache = next((variables[name] for name in CACHES if variables.get(name)), f"{home}/hub")
    snapshots = f"{cache}/models--{model.replace('/', '--')}/snapshots"
    try:
        states = sorted(
            (proc / str(pid) / "root" / snapshots.lstrip("/")).iterdir(), key=lambda one: one.stat().st_mtime
        )
    except OSError:
        return ""
    return f"{snapshots}/{states[-1].name}" if states else ""


def _outside(proc: Path, pid: int, inside: str) -> str:
    """The path on this machine of a path that a process sees; empty if it is in no mount of this machine."""
    try:
        theirs, ours = read_mounts(proc, str(pid)), read_mounts(proc)
    except OSError:
        return ""
    mount = _last(theirs, inside)
    if mount is None:
        return ""
    deep = str(PurePosixPath(mount.root) / PurePosixPath(inside).relative_to(mount.path))
    same = [one for one in ours if one.number == mount.number and _below(deep, one.root)]
    if not same:
        return ""
    best = max(same, key=lambda one: len(one.root))
    return str(PurePosixPath(best.path) / PurePosixPath(deep).relative_to(best.root))


def _last(mounts: list[Mount], path: str) -> Mount | None:
    """The mount that has a path: the last one at the deepest mount point that contains the path."""
    found = [mount for mount in mounts if _below(path, mount.path)]
    longest = max((len(mount.path) for mount in found), default=0)
    return next((mount for mount in reversed(found) if len(mount.path) == longest), None)


def _below(path: str, directory: str) -> bool:
    return PurePosixPath(path).is_relative_to(directory)


def _processes(proc: Path) -> list[int]:
    return [int(name) for name in os.listdir(proc) if name.isdecimal()]


def _command(proc: Path, pid: int) -> list[str]:
    return [word for word in _text(proc / str(pid) / "cmdline").split("\0") if word]


def _text(path: Path) -> str:
    """The text of a file; empty if it cannot be read, as of a process that has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _listening(proc: Path, process: str) -> Iterator[tuple[str, int, str]]:
    """Address, port and inode of the listening TCP sockets that a process's network has."""
    for name in ("tcp", "tcp6"):
        for one in sockets(_text(proc / process / "net" / name)):
            if one.listening:
                yield one.local, one.port, one.inode


def _owners(proc: Path, commands: dict[int, list[str]]) -> dict[str, int]:
    """The process of each socket, by inode: the first process that has a command line."""
    found: dict[str, int] = {}
    for pid in sorted(pid for pid, words in commands.items() if words):
        with suppress(OSError):
            for name in os.listdir(proc / str(pid) / "fd"):
                with suppress(OSError):
                    target = os.readlink(proc / str(pid) / "fd" / name)
                    if target.startswith("socket:["):
                        found.setdefault(target[8:-1], pid)
    return found


def _inside(proc: Path, programs: dict[int, Program], port: int) -> int | None:
    """The recognised program that listens on a port of a container's own network."""
    # A program outside of containers has the sockets of the machine, and may listen on the same port there.
    ours = {inode for _address, _port, inode in _listening(proc, "self")}
    for pid, program in sorted(programs.items()):
        if program.kind and any(one[1] == port and one[2] not in ours for one in _listening(proc, str(pid))):
            return pid
    return None


def _containers(run: Run) -> dict[str, str]:
    """The names of the running containers by the first 12 digits of their ids."""
    rows = [line.split(" ", 1) for line in run(["docker", "ps", "--format", "{{.ID}} {{.Names}}"]).stdout.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}
