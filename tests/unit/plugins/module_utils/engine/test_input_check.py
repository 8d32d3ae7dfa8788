# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in the role vllm's input that the checks of model registry, instances and settings do not find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import agent_service, input_check
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize("image", [f"registry.example.com/vllm@{DIGEST}", f"registry:5000/vllm:0.32.0@{DIGEST}"])
def test_an_image_by_digest_is_accepted(image: str) -> None:
    assert input_check.image_problems(image) == []


@pytest.mark.parametrize(
    "image",
    ["", "vllm", "registry.example.com/vllm:0.32.0", "vllm@sha256:0f", f"vllm@{DIGEST}0", f"a b@{DIGEST}", DIGEST],
)
def test_an_image_without_a_digest_is_a_problem(image: str) -> None:
    (problem,) = input_check.image_problems(image)
    assert (problem.key, problem.value) == ("vllm_image", image)
    assert "site variable engine_image" in str(problem) and "must name the image by digest" in str(problem)


def test_wrong_sources_of_needed_models_are_reported() -> None:
    models: dict[Any, Any] = {
        "good": {"model": "controller:/srv/good"},
        "chat": {"model": "org/chat", "speculative-config": {"model": "small", "num_speculative_tokens": 3}},
        "short": {"base": "chat"},
        "small": {"model": "s3://bucket/small"},
        "legal": {"base": "chat", "adapter": "~/legal"},
        "spare": {"model": "org/spare"},
        "empty": {"model": " "},
        7: {"model": "x"},
        "none": None,
    }
    instances: list[Any] = [{"model": name} for name in ("short", "empty", "chat", ["none"])]
    found = [str(one) for one in input_check.source_problems(models, [*instances, "no instance", {"name": "d"}])]
    assert [one.split(" ")[0] for one in found] == ["models.chat:", "models.small:", "models.legal:"]
    assert "needs the key revision, too" in found[0] and "must be controller:/absolute/path" in found[1]
    assert input_check.source_problems(models, [{"name": "a", "model": "good"}]) == []


def test_the_agent_on_the_port_of_an_engine_or_at_a_foreign_address_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both mistakes are reported at once. The ports of an absent instance do not count."""
    monkeypatch.setattr(agent_service, "problem_with", lambda address, port, pid: f"{address}:{port} of {pid}")
    leaves = {"name": "side", "port": 5005, "state": "absent"}
    instances: list[Any] = [{"name": "main", "port": 5004}, leaves]
    taken, foreign = map(str, input_check.agent_problems("192.0.2.1", 5004, 7, instances))
    assert taken.startswith("role vllm: vllm_agent_port: 5004: (site variable inference_agent_port) is the port of an")
    assert foreign.endswith("the agent cannot listen: 192.0.2.1:5004 of 7") and "inference_address" in foreign
    monkeypatch.setattr(agent_service, "problem_with", lambda *where: "")
    assert input_check.agent_problems("192.0.2.1", 5005, 7, instances) == []
    gang = {"name": "wide", "port": 5006, "nodes": ["n1", "n2"], "gang_port": 5110, "rendezvous_port": 29510}
    assert input_check.agent_problems("192.0.2.1", 29520, 7, [gang]) == []
    # Ray takes 128 ports.
    (taken,) = map(str, input_check.agent_problems("192.0.2.1", 29520, 7, [{**gang, "executor": "ray"}]))
    assert "vllm_agent_port: 29520" in taken


@pytest.fixture
def entries(tmp_path: Path, write_model: Callable[..., Path]) -> dict[str, Entry]:
    """Models of the node and of the controller, without chat templates, and a model that is not there."""
    models: dict[str, Any] = {
        "own": {"model": str(write_model(tmp_path / "own"))},
        "own-bot": {"base": "own", "system-prompt": "Be kind."},
        "sent": {"model": f"controller:{write_model(tmp_path / 'sent')}"},
        "sent-bot": {"base": "sent", "system-prompt": "Be kind."},
        "gone-bot": {"model": "/gone", "system-prompt": "Be kind."},
    }
    return dict(Declared.read(models).entries)


def test_the_node_checks_the_prompts_of_its_own_models(entries: dict[str, Entry], tmp_path: Path) -> None:
    found = input_check.prompt_problems(entries.values(), tmp_path / "store")
    assert [str(problem).partition(" the model has no chat template")[0] for problem in found] == ["models.own-bot:"]


def test_golden_prompts_of_another_task_than_that_of_the_model_are_a_problem(tmp_path: Path) -> None:
    source = tmp_path / "llama"
    source.mkdir()
    (source / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    text, order = {"prompt": "2 + 2 =", "expect": "4"}, {"prompt": "a cat", "order": ["a kitten", "a car"]}
    chat = Entry("chat", "chat", str(source), golden_prompts=(text, order))
    legal = Entry("legal", "legal", "/srv/legal", golden_prompts=({**order, "prompt": "a tort"},), adapter_of="chat")
    vectors = Entry("vectors", "chat", str(source), flags={"runner": "pooling"}, golden_prompts=(text,))
    late = Entry("late", "late", "controller:/srv/late", golden_prompts=(order,))

    def adapters_of(name: str) -> list[Entry]:
        return [legal] if name == "chat" else []

    found = input_check.golden_problems([chat, vectors, late], adapters_of, tmp_path / "store")
    assert [(one.where, one.key, one.value) for one in found] == [
        ("models.chat", "golden-prompts", "a cat"),
        ("models.legal", "golden-prompts", "a tort"),
        ("models.vectors", "golden-prompts", "2 + 2 ="),
    ]
    assert "the model's task is generate: use prompt and expect" in found[0].message


def test_files_of_golden_prompts_that_the_node_cannot_send_are_named(tmp_path: Path) -> None:
    right, empty, large = (tmp_path / name for name in ("right.wav", "empty.wav", "large.wav"))
    right.write_bytes(b"RIFF")
    empty.touch()
    with large.open("wb") as file:
        file.truncate((25 << 20) + 1)
    prompts = [{"audio": str(path), "expect": "x"} for path in (right, empty, large, tmp_path / "gone.wav", tmp_path)]
    entry = Entry("speech", "speech", "/srv/whisper", golden_prompts=tuple(prompts))
    found = dict(input_check.wrong_golden(entry, ()))
    assert list(found) == [str(path) for path in (empty, large, tmp_path / "gone.wav", tmp_path)]
    assert found[str(empty)] == "is a golden prompt, and on this node the file is empty"
    assert "has 25.0 MiB, and the engine reads at most 25 MiB" in found[str(large)]
    assert found[str(tmp_path / "gone.wav")].endswith("does not exist: copy the file to each node of this model")
    assert found[str(tmp_path)].endswith("the file is no regular file")
    assert len(list(input_check.wrong_golden(entry, ("generate",)))) == 5 + 4, "all mistakes at once"


def test_an_affinity_key_that_no_request_to_the_model_has_is_a_problem(tmp_path: Path) -> None:
    source = tmp_path / "whisper"
    source.mkdir()
    (source / "config.json").write_text(json.dumps({"architectures": ["WhisperForConditionalGeneration"]}))
    models = {name: {"model": str(source), "routing": "affinity"} for name in ("speech", "late")}
    models["late"]["model"] = "controller:/srv/late"
    models["plain"] = {"model": str(source)}
    entries = [Entry(name, name, entry["model"]) for name, entry in models.items()]
    (found,) = input_check.routing_problems(entries, models, tmp_path / "store")
    assert str(found).startswith("models.speech: affinity-key: is in no request: clients send sound as a form")
