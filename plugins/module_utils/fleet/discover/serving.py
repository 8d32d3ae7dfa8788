# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports what serves on a machine already, and how to take its models over. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...core.paths import AGENT_UNIT, container_name
from ...engine.instances import RESERVED_PORTS
from ...gateway.places import HAPROXY
from ...monitoring.exporters import DCGM_CONTAINER, NODE_UNIT
from ...monitoring.places import ALERTMANAGER, PROMETHEUS
from .finding import Proposal
from .machine import Machine
from .names import DECIDE

ENGINE_KINDS = frozenset({"vllm", "sglang", "trtllm", "tgi", "ollama", "llama.cpp", "triton"})
"""Programs that hold GPUs and serve models."""

WITH_SAFETENSORS = frozenset({"vllm", "sglang", "trtllm", "tgi"})
"""Programs whose model directories an engine of this collection can load."""


OUR_UNITS = frozenset({AGENT_UNIT, HAPROXY, NODE_UNIT, PROMETHEUS, ALERTMANAGER})
"""Units of this collection that listen on RESERVED_PORTS."""


def set_up(machine: Machine) -> Machine:
    """A machine of an earlier inventory, without the programs that this collection has set up there."""
    foreign = [
        service
        for service in machine.services
        if service.get("unit") not in OUR_UNITS
        and service.get("container") != DCGM_CONTAINER
        and not str(service.get("container") or "").startswith(container_name(""))
    ]
    return replace(machine, services=foreign)


def propose(machine: Machine, name: str, engine_port: int) -> Proposal:
    """A line for each program that serves already, with its port, models, and the way to take them over.

    `engine_port` is the port of the proposed instance. A machine without GPUs gets no instance, and holds no models.
    """
    found = Proposal()
    holds_engines = bool(machine.usable_gpus)
    first_port = engine_port if holds_engines else None
    for service in machine.services:
        if not service.get("kind"):
            found.findings += _conflict(service, first_port)
            continue
        found.findings.append(f"{_words(service)} serves already{_models(service)}")
        directory = service.get("model_path")
        if directory and holds_engines and service["kind"] in WITH_SAFETENSORS:
            found.findings.append(
                f"to take {service.get('model') or 'its model'} over without a second download, set its entry of "
                f"models to model: {directory}"
            )
        what = "frees its port" + " and its GPUs" * (holds_engines and service["kind"] in ENGINE_KINDS)
        found.ask(
            "services",
            DECIDE,
            f"{name}: when may {_words(service)} be stopped ({_stop(service)})? This {what}. Stop it last: when all "
            "other questions are answered and the plan shows no problem",
        )
    for gpu in machine.usable_gpus:
        held = gpu.get("memory_used_mib") or 0
        total = gpu.get("memory_total_mib") or 0
        if total and held > total // 10:
            index = gpu.get("index")
            card = gpu.get("pci_bus_id") if index is None else index
            found.findings.append(f"GPU {card} has {held} of {total} MiB in use")
    return found


def _words(service: Mapping[str, Any]) -> str:
    """The service in words, as "vllm (container web, port 8000)"."""
    place = service.get("container") or service.get("unit") or f"process {service.get('pid')}"
    kind = "container " if service.get("container") else ""
    return f"{service.get('kind') or service.get('program') or 'a program'} ({kind}{place}, port {service.get('port')})"


def _models(service: Mapping[str, Any]) -> str:
    models = service.get("models") or ([service["model"]] if service.get("model") else [])
    return f": {', '.join(models)}" if models else ""


def _stop(service: Mapping[str, Any]) -> str:
    """The command that stops the service, also after the next boot."""
    if container := service.get("container"):
        # Docker starts a container with `--restart=always` again when Docker itself starts.
        return f"docker update --restart=no {container} && docker stop {container}"
    unit = str(service.get("unit") or "")
    if unit.endswith(".service"):
        return f"systemctl disable --now {unit}"
    return f"kill {service.get('pid')}"


def _conflict(service: Mapping[str, Any], first_port: int | None) -> list[str]:
    """A line for an unknown program on a port that the collection needs."""
    port = service.get("port")
    owner = "the first engine" if port == first_port else RESERVED_PORTS.get(int(port or 0))
    return [f"{_words(service)} listens on the port of {owner}: stop it, or change the port"] if owner else []
