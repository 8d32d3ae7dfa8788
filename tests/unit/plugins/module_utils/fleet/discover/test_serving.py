# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engines and other programs that already run on a machine."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.serving import propose

Make = Callable[..., Machine]

ENGINE = {
    "kind": "vllm",
    "port": 8000,
    "pid": 77,
    "container": "web",
    "unit": "",
    "model": "Qwen/Qwen3-32B",
    "models": ["chat"],
    "model_path": "/data/hub/models--Qwen--Qwen3-32B/snapshots/abc",
}


def test_an_engine_is_named_with_its_models_and_the_way_to_take_them_over(machine: Make) -> None:
    found = propose(machine("l40s", services=[ENGINE]), "gpu-01", 5005)
    assert "vllm (container web, port 8000) serves already: chat" in found.findings
    assert "model: /data/hub/models--Qwen--Qwen3-32B/snapshots/abc" in found.findings[1]
    text = found.questions[0].text
    assert "(docker update --restart=no web && docker stop web)" in text and "Stop it last" in text


def test_notebooks_are_questions_and_models_of_other_formats_are_not_taken_over(machine: Make) -> None:
    notebook = {"kind": "jupyter", "port": 8888, "pid": 5, "unit": "jupyter.service", "container": ""}
    ollama = {**ENGINE, "kind": "ollama", "container": "", "unit": "ollama.service"}
    found = propose(machine("l40s", services=[notebook, ollama]), "gpu-01", 5005)
    assert not [line for line in found.findings if "second download" in line]
    assert "systemctl disable --now jupyter.service" in found.questions[0].text
    assert "frees its port and its GPUs" in found.questions[1].text


def test_an_unknown_program_is_named_only_on_a_port_that_is_needed(machine: Make) -> None:
    def service(port: int) -> dict[str, object]:
        return {"kind": "", "program": "nginx", "port": port, "pid": 9, "unit": "nginx.service", "container": ""}

    found = propose(machine("l40s", services=[service(80), service(8000), service(5005)]), "gpu-01", 5005)
    assert found.findings == [
        "nginx (nginx.service, port 8000) listens on the port of the gateway: stop it, or change the port",
        "nginx (nginx.service, port 5005) listens on the port of the first engine: stop it, or change the port",
    ]
    assert not found.questions


def test_a_machine_without_gpus_needs_no_port_of_an_engine_and_no_model(machine: Make) -> None:
    nginx = {"kind": "", "program": "nginx", "pid": 9, "unit": "nginx.service", "container": ""}
    services = [ENGINE, {**nginx, "port": 5005}, {**nginx, "port": 8000}]
    found = propose(machine("none", services=services), "gw-01", 5005)
    assert found.findings == [
        "vllm (container web, port 8000) serves already: chat",
        "nginx (nginx.service, port 8000) listens on the port of the gateway: stop it, or change the port",
    ]
    assert "This frees its port. Stop it last" in found.questions[0].text


def test_gpus_in_use_are_named(machine: Make) -> None:
    used = {"memory_used_mib": 60000, "memory_total_mib": 81559}
    # The report of an old driver has no index.
    old = {**used, "index": None, "pci_bus_id": "0000:1a:00.0"}
    gpus = [{**used, "index": 0}, {"index": 1, "memory_used_mib": 4}, old]
    found = propose(machine("l40s", gpus=gpus), "gpu-01", 5005)
    assert found.findings == [
        "GPU 0 has 60000 of 81559 MiB in use",
        "GPU 0000:1a:00.0 has 60000 of 81559 MiB in use",
    ]
