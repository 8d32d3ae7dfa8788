# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models for tests: small models on disk, and the configurations of published models. Also a hub, and a free port."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import facts
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

from .fake_hub import FakeHub
from .ports import free_port

PUBLISHED = Path(__file__).parent / "module_utils/models/data/models.json"

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def _write_safetensors(path: Path, tensors: Mapping[str, int], fill: int = 7) -> None:
    """A file with F32 tensors of one dimension; the values of `tensors` count elements."""
    header = {}
    position = 0
    for name, count in tensors.items():
        header[name] = {"dtype": "F32", "shape": [count], "data_offsets": [position, position + 4 * count]}
        position += 4 * count
    raw = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes([fill]) * position)


def _write_model(root: Path, fill: int = 7) -> Path:
    """A complete model of two shards with 4000 bytes of weights each, and a template below."""
    (root / "templates").mkdir(parents=True)
    (root / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (root / "templates" / "chat [1].jinja").write_text("{{ messages }}")
    for tensor, shard in zip("ab", SHARDS, strict=True):
        _write_safetensors(root / shard, {tensor: 1000}, fill)
    weight_map = dict(zip("ab", SHARDS, strict=True))
    (root / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 8000}, "weight_map": weight_map})
    )
    return root


@pytest.fixture
def write_safetensors() -> Callable[..., None]:
    """Writes a safetensors file."""
    return _write_safetensors


@pytest.fixture
def write_model() -> Callable[..., Path]:
    """Writes the directory of a complete model."""
    return _write_model


@pytest.fixture(scope="session")
def published() -> dict[str, Any]:
    """The config.json of published models, and their numbers of parameters, by name."""
    return json.loads(PUBLISHED.read_text())


@pytest.fixture
def model(published: dict[str, Any]) -> Callable[..., facts.ModelFacts]:
    """The facts of a published model from its configuration alone, with some of its keys changed."""

    def read(name: str, **changes: Any) -> facts.ModelFacts:
        return facts.from_config({**published[name]["config"], **changes})

    return read


@pytest.fixture
def publish_model(tmp_path: Path) -> Callable[..., Path]:
    """Publishes a complete model in a store, and returns its directory there."""

    def publish(root: Path, name: str, fill: int = 7) -> Path:
        source = _write_model(tmp_path / "sources" / f"{name}-{fill}", fill)
        manifest, problems = build(source, name, HashCache())
        assert manifest, problems
        store = Store(root, HashCache())
        plan = store.plan(name, manifest)
        store.publish(plan, source)
        return plan.path

    return publish


@pytest.fixture
def hub(tmp_path: Path, write_model: Callable[..., Path]) -> Iterator[FakeHub]:
    root = write_model(tmp_path / "acme")
    (root / "tokenizer.json").write_text("{}")
    (root / "chat_template.jinja").write_text("{{ messages }}")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "vocab_size": 300}
    (root / "config.json").write_text(json.dumps({**config, "hidden_size": 128, "num_attention_heads": 2}))
    hub = FakeHub(root)
    thread = Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield hub
    hub.shutdown()
    hub.server_close()
    thread.join()


@pytest.fixture
def port() -> int:
    return free_port()
