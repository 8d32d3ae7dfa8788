# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task by which an engine is probed, from the model's files and the release's flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import task
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import probe
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel


def release(path: Path, flags: dict[str, Any] | None = None) -> Release:
    instance = Instance("main", "tiny", 5005, accelerator="cpu")
    return render(instance, [], StoredModel(str(path), "r"), "image@sha256:0", Settings(), flags=flags or {}).release


def model(path: Path, architecture: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    return path


@pytest.mark.parametrize(
    ("architecture", "flags", "wanted"),
    [
        ("LlamaForCausalLM", {}, "generate"),
        ("BertModel", {}, "embed"),
        # The engine generates with this architecture, unless its flags ask for pooling.
        ("LlamaModel", {}, "generate"),
        ("LlamaModel", {"runner": "pooling"}, "embed"),
        ("LlamaForCausalLM", {"runner": "pooling"}, "embed"),
        ("BertForTokenClassification", {}, "token-classify"),
        ("WhisperForConditionalGeneration", {}, "transcribe"),
    ],
)
def test_the_task_follows_from_the_architecture_and_the_flags(
    tmp_path: Path, architecture: str, flags: dict[str, Any], wanted: str
) -> None:
    found = release(model(tmp_path / "model", architecture), flags)
    assert task.of(found) == wanted == task.certain(found)[0]
    assert probe.target(found, {}, wanted).request is found.adapter.requests[wanted]


def test_before_the_model_is_on_the_node_the_task_is_generate(tmp_path: Path) -> None:
    found = release(tmp_path / "model")
    assert task.of(found) == "generate" and task.certain(found) == ()
    model(tmp_path / "model", "BertModel")
    assert task.of(found) == "embed"


def test_the_files_of_a_model_are_read_once(tmp_path: Path) -> None:
    found = release(model(tmp_path / "model", "BertModel"))
    assert task.of(found) == "embed"
    model(tmp_path / "model", "LlamaForCausalLM")
    assert task.of(found) == "embed"


def test_the_tasks_of_an_architecture_of_a_later_version_are_not_certain(tmp_path: Path) -> None:
    found = release(model(tmp_path / "model", "BrandNewForConditionalGeneration"))
    assert (task.of(found), task.certain(found)) == ("generate", ())
    other = release(model(tmp_path / "other", "BrandNewEmbeddingModel"))
    assert (task.of(other), task.certain(other)) == ("embed", ())
