# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds running containers with GPUs, and tries to open the device nodes in each of them. Private to the collection.

At each `systemctl daemon-reload`, systemd sets the device rules of a container's cgroup again. With `--gpus`, a
hook has added the GPUs to the cgroup. systemd does not know these GPUs, so its rules lack them: the container keeps its
device nodes, but cannot open them any more (NVIDIA/nvidia-container-toolkit issue 48). Devices by CDI name are in the
rules and stay.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.commands import Outcome
from . import cdi

Run = Callable[[list[str]], Outcome]
"""Runs a command within the time limit."""

CDI, RUNTIME, GPUS, DEVICES = "cdi", "runtime", "gpus", "devices"
"""How a container asks for GPUs: by CDI name, from NVIDIA's runtime, by `--gpus`, or by the names of device nodes."""

NO_GPUS = ("", "none", "void")
"""Values of NVIDIA_VISIBLE_DEVICES that mean no GPU. Source: the toolkit's documentation of this variable."""

NODE = re.compile(r"nvidia(?:[0-9]+|ctl|-uvm)")
"""The device nodes without which CUDA does not work."""

TRY = 'for node; do words=$( (: <"$node") 2>&1 ) && echo "+ $node" || echo "- $node ${words##*: }"; done'
"""Opens each device node and prints the result, without a request to the GPU. Runs in the container, because only there
the device rules apply."""


@dataclass
class Container:
    """A running container with GPUs."""

    id: str
    name: str
    request: str
    pid: int = 0
    nodes: list[str] = field(default_factory=list)
    """The device nodes in the container."""
    lost: dict[str, str] = field(default_factory=dict)
    """The device nodes that it cannot open, with the reason."""
    error: str = ""
    """Why the device nodes could not be tried; empty if they could."""


@dataclass
class Found:
    """All running containers with GPUs, or why they are unknown."""

    containers: list[Container] = field(default_factory=list)
    error: str = ""


def find(run: Run, root: Path = Path("/"), docker: str = "docker") -> Found:
    """Try the GPUs of all running containers. Raises nothing: errors are part of the result."""
    listed = run([docker, "ps", "--quiet", "--no-trunc"])
    if listed.code != 0:
        return Found(error=_words(listed))
    ids = re.findall(r"^[0-9a-f]{64}$", listed.stdout, re.MULTILINE)
    if not ids:
        return Found()
    # If a container has ended since, the command fails, but prints the other containers.
    inspected = run([docker, "inspect", "--type", "container", *ids])
    try:
        containers = parse(json.loads(inspected.stdout))
    except ValueError:
        return Found(error=_words(inspected))
    for container in containers:
        _try(container, run, root, docker)
    return Found(containers)


def parse(inspected: Any) -> list[Container]:
    """The containers with GPUs in the output of `docker inspect`."""
    found = []
    for entry in inspected if isinstance(inspected, list) else []:
        request = _request(_mapping(entry))
        if request:
            pid = _mapping(entry.get("State")).get("Pid")
            name = str(entry.get("Name") or "").removeprefix("/")
            found.append(Container(str(entry.get("Id") or ""), name, request, pid if isinstance(pid, int) else 0))
    return found


def facts(found: Found) -> dict[str, Any]:
    """The fact `container_gpus` of the module gpu_facts."""
    return {
        "error": found.error or None,
        "lost": [container.name for container in found.containers if container.lost],
        "containers": [
            {
                "id": container.id,
                "name": container.name,
                "request": container.request,
                "devices": container.nodes,
                "lost": container.lost,
                "error": container.error or None,
            }
            for container in found.containers
        ],
    }


def _request(container: Mapping[str, Any]) -> str:
    """How a container asks for GPUs; empty if it does not."""
    host = _mapping(container.get("HostConfig"))
    requests = [_mapping(request) for request in host.get("DeviceRequests") or []]
    if any(str(name).startswith(f"{cdi.KIND}=") for request in requests for name in request.get("DeviceIDs") or []):
        return CDI
    if any("gpu" in (names or []) for request in requests for names in request.get("Capabilities") or []):
        return GPUS
    environment = dict(str(line).partition("=")[::2] for line in _mapping(container.get("Config")).get("Env") or [])
    if host.get("Runtime") == "nvidia" and environment.get("NVIDIA_VISIBLE_DEVICES", "") not in NO_GPUS:
        return RUNTIME
    devices = [_mapping(device).get("PathOnHost") for device in host.get("Devices") or []]
    return DEVICES if any(str(path).startswith("/dev/nvidia") for path in devices) else ""


def _try(container: Container, run: Run, root: Path, docker: str) -> None:
    container.nodes = device_nodes(root, container.pid)
    if not container.nodes:
        container.error = "it has no device node of an NVIDIA GPU"
        return
    tried = run([docker, "exec", container.id, "sh", "-c", TRY, "sh", *container.nodes])
    answers = dict(_answers(tried.stdout))
    container.lost = {node: reason for node, reason in answers.items() if reason and node in container.nodes}
    if set(container.nodes) - set(answers):
        container.error = f"the device nodes could not be tried: {_words(tried)}"


def device_nodes(root: Path, pid: int) -> list[str]:
    """The NVIDIA devices in the /dev of a process, read from the host without running a program in the container."""
    try:
        names = os.listdir(root / f"proc/{pid}/root/dev")
    except OSError:
        return []
    return sorted(f"/dev/{name}" for name in names if NODE.fullmatch(name))


def _answers(output: str) -> list[tuple[str, str]]:
    """Each tried device node, with the reason why it cannot be opened; empty if it can."""
    found = re.findall(r"^([+-]) (/dev/\S+) ?(.*)$", output, re.MULTILINE)
    return [(node, (words or "cannot be opened") if sign == "-" else "") for sign, node, words in found]


def _words(outcome: Outcome) -> str:
    text = outcome.message or outcome.stderr.strip() or outcome.stdout.strip()
    return text or f"exit code {outcome.code} without a message"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
