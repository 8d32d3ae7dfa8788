# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kind and model of a program, by its command line."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey.programs import proxied, recognise


@pytest.mark.parametrize(
    ("line", "kind", "model"),
    [
        ("/usr/bin/python3 /usr/local/bin/vllm serve Qwen/Qwen3-32B --port 8000", "vllm", "Qwen/Qwen3-32B"),
        ("python3 -m vllm.entrypoints.openai.api_server --model /models/a", "vllm", "/models/a"),
        ("vllm serve --model=Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B"),
        ("python3 -m sglang.launch_server --model-path /models/b", "sglang", "/models/b"),
        ("python3 -u -m sglang.launch_server --model-path /models/b", "sglang", "/models/b"),
        ("/usr/bin/python3 /usr/local/bin/trtllm-serve org/name --port 8000", "trtllm", "org/name"),
        ("/usr/bin/python3 /usr/local/bin/trtllm-serve serve org/name", "trtllm", "org/name"),
        ("text-generation-launcher --model-id org/name", "tgi", "org/name"),
        ("/usr/local/bin/ollama serve", "ollama", ""),
        ("/opt/llama-server -m /models/c.gguf", "llama.cpp", "/models/c.gguf"),
        ("tritonserver --model-repository=/repo", "triton", "/repo"),
        ("/usr/lib/ray/core/src/ray/raylet/raylet --x", "ray", ""),
        ("/usr/bin/python3 /usr/bin/jupyter-lab --ip 0.0.0.0", "jupyter", ""),
        ("/usr/bin/python3 /usr/bin/litellm --config x.yaml", "litellm", ""),
        ("nginx: master process /usr/sbin/nginx", "", ""),
        ("vim /srv/vllm/notes", "", ""),
        ("-m vllm.entrypoints.openai.api_server", "vllm", ""),
    ],
)
def test_kind_and_model_are_read_from_the_command_line(line: str, kind: str, model: str) -> None:
    found = recognise(line.split())
    assert (found.kind, found.model) == (kind, model)


def test_an_empty_command_line_has_no_kind_and_no_port() -> None:
    assert recognise([]).kind == "" and proxied([]) == 0


def test_the_port_in_the_container_is_read_from_docker_proxy() -> None:
    line = "/usr/bin/docker-proxy -proto tcp -host-port 80 -container-ip 172.17.0.2 -container-port 8000"
    assert proxied(line.split()) == 8000
    assert proxied(["nginx"]) == 0
