# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two variants of one model, served at once, each with its own prompt."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from node import Node, changes

PIRATE = "Talk like a pirate: \"{{ arr }}\", {% if %} \\ 'ahoy'\n\n– 海賊 –"
CLERK = (
    "You answer for the office. You are polite and brief, you know the opening hours, and you send everybody who asks "
    "for money to the second floor, where they wait."
)
SYSTEM = {"role": "system", "content": "No such talk."}
USER = {"role": "user", "content": "Who are you?"}


def chat(node: Node, port: int, *messages: dict[str, Any]) -> str:
    return node.ask({5005: "main", 5006: "office"}[port], port, messages=[*messages, USER])


def seen(node: Node, port: int, *messages: dict[str, Any]) -> str:
    """The prompt that the engine gives the model for these messages, decoded token by token."""
    model = {5005: "main", 5006: "office"}[port]
    status, asked = node.request("/tokenize", {"model": model, "messages": [*messages, USER]}, port)
    assert status == 200, asked
    status, decoded = node.request("/detokenize", {"model": model, "tokens": asked["tokens"]}, port)
    assert status == 200, decoded
    return str(decoded["prompt"])


def test_each_variant_answers_by_its_own_prompt(node: Node) -> None:
    assert chat(node, 5005) == "Arr, I am tiny-a."
    assert chat(node, 5006) == "I am tiny-a."


def test_each_variant_has_its_own_name(node: Node) -> None:
    """The engine answers to the name of the instance and to the name of the variant."""
    assert node.ask("tiny-pirate") == "Arr, I am tiny-a."
    assert node.ask("tiny-clerk", 5006) == "I am tiny-a."
    assert node.ask("tiny-a") == ""


def test_the_prompt_arrives_unchanged(node: Node) -> None:
    """The prompt has quotes, braces, tags, a backslash, an empty line and other scripts. The user's message follows."""
    assert f"{PIRATE}<user>Who are you?" in seen(node, 5005)
    assert f"{CLERK}<user>Who are you?" in seen(node, 5006)
    assert PIRATE not in seen(node, 5006)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_system_prompt_of_a_request_replaces_or_extends_that_of_the_variant(node: Node, role: str) -> None:
    own = {**SYSTEM, "role": role}
    assert chat(node, 5005, own) == "I am tiny-a."
    assert PIRATE not in seen(node, 5005, own)
    assert f"{CLERK}\n\nNo such talk.<user>" in seen(node, 5006, own)


def test_a_stream_comes_piece_by_piece(node: Node) -> None:
    body = {"model": "main", "messages": [USER], "max_tokens": 30, "temperature": 0, "stream": True}
    header = ("--header", "Content-Type: application/json")
    url = "http://127.0.0.1:5005/v1/chat/completions"
    argv = node.argv("curl", "--silent", "--no-buffer", "--max-time", "120", *header, "--data-binary", "@-", url)
    output = subprocess.run(argv, input=json.dumps(body), capture_output=True, text=True, check=True).stdout
    lines = [line.removeprefix("data: ") for line in output.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    pieces = [json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines]
    assert "".join(pieces) == "Arr, I am tiny-a."
    assert len([piece for piece in pieces if piece]) > 1


def test_the_engine_caches_the_prompt_of_a_variant(node: Node) -> None:
    """Every request begins with the same bytes."""

    def hits() -> float:
        text = node.run("curl --silent http://127.0.0.1:5006/metrics")
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("vllm:prefix_cache_hits_t"))

    node.ask("office", 5006, messages=[{"role": "user", "content": "One question."}])
    before = hits()
    node.ask("office", 5006, messages=[{"role": "user", "content": "Quite another one."}])
    assert hits() - before >= 128


def test_the_weights_of_both_variants_exist_once(node: Node) -> None:
    """The links of both variants lead to the only file with weights."""
    links = node.run("find /mnt/models/tiny-pirate /mnt/models/tiny-clerk -name '*.safetensors' -type l").splitlines()
    assert len(links) >= 2
    targets = {node.run(f"readlink -f {link}") for link in links}
    assert len(targets) == 1
    assert next(iter(targets)).startswith("/mnt/models/tiny-a/")
    assert node.run("find /mnt/models -name '*.safetensors' -type f | wc -l") == "1"


def test_an_altered_template_is_repaired(node: Node) -> None:
    pid = node.engine_pid()
    (template,) = node.run("find /mnt/models/tiny-pirate -name chat_template.jinja").splitlines()
    before = node.run(f"cat {template}")
    node.run(f"echo altered > {template}")
    output = node.site("--tags", "model_store,vllm_configure")
    assert "chat_template.jinja was altered" in output
    assert changes(output) == 1
    assert node.run(f"cat {template}") == before
    assert node.engine_pid() == pid
