# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a model, read from its directory or only from its configuration."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import facts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
}


@pytest.fixture
def root(tmp_path: Path, write_model: Callable[..., Path]) -> Path:
    """A complete model."""
    path = write_model(tmp_path / "model")
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "tokenizer.json").write_text("{}")
    (path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": "{{ messages }}", "model_max_length": 1024})
    )
    return path


def messages(found: ModelFacts) -> list[str]:
    return [f"{problem.file} {problem.message}" for problem in found.problems]


def test_the_facts_of_a_complete_model_are_read(root: Path) -> None:
    found = facts.gather(root)
    assert messages(found) == []
    assert found.path == str(root)
    assert (found.config.model_type, found.config.max_length, found.config.dtype) == ("llama", 2048, "float16")
    assert found.weights and (found.weights.bytes, found.weights.by_dtype) == (8000, {"F32": 8000})
    assert len(found.shards) == 2
    assert (found.missing_shards, found.cut_shards) == ((), ())
    assert (found.tokenizer, found.chat_template) == ("tokenizer.json", "tokenizer_config.json")
    assert (found.remote_code, found.revision) == ((), None)


@pytest.mark.parametrize(
    ("texts", "length"),
    [
        ({"sentence_bert_config.json": '{"max_seq_length": 256, "do_lower_case": false}'}, 256),
        # The first file that is not empty counts.
        ({"sentence_bert_config.json": "{}", "sentence_roberta_config.json": '{"max_seq_length": 128}'}, 128),
        ({"sentence_bert_config.json": '{"a": 1}', "sentence_roberta_config.json": '{"max_seq_length": 128}'}, 2048),
        ({"sentence_bert_config.json": '{"max_seq_length": null}'}, 2048),
        ({"sentence_bert_config.json": "["}, 2048),
    ],
)
def test_files_of_sentence_transformers_set_the_longest_request(root: Path, texts: dict[str, str], length: int) -> None:
    for name, text in texts.items():
        (root / name).write_text(text)
    assert facts.gather(root).config.max_length == length


def test_facts_are_the_same_after_json(root: Path, published: dict[str, Any]) -> None:
    for found in (facts.gather(root), *(facts.from_config(entry["config"]) for entry in published.values())):
        sent = json.loads(json.dumps(found.to_dict()))
        assert ModelFacts.from_dict({**sent, "key_of_a_later_version": 1}) == found


def test_missing_and_cut_shards_are_named(root: Path) -> None:
    first, second = sorted(root.glob("*.safetensors"))
    first.unlink()
    os.truncate(second, second.stat().st_size - 10)
    found = facts.gather(root)
    assert found.missing_shards == (first.name,)
    assert found.cut_shards == (second.name,)
    assert any(text.startswith(f"{first.name} is missing") for text in messages(found))
    assert any("is cut: expected" in text and "(10 missing)" in text for text in messages(found))
    # The other facts are read all the same.
    assert found.config.layers == 1


def test_a_missing_directory_is_a_problem(tmp_path: Path) -> None:
    found = facts.gather(tmp_path / "gone")
    assert messages(found) == [" is missing, or is not a directory"]
    assert found.weights is None
    assert set(found.to_dict()) == set(ModelFacts().to_dict())


def test_an_empty_directory_lacks_configuration_and_weights(tmp_path: Path) -> None:
    texts = messages(facts.gather(tmp_path))
    assert "config.json is missing: a model needs its configuration" in texts
    assert any("contains no weights" in text for text in texts)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "model.safetensors.index.json", "manifest.json"]
)
def test_each_damaged_file_is_a_problem(root: Path, name: str, content: bytes) -> None:
    (root / name).write_bytes(content)
    found = facts.gather(root)
    assert [text for text in messages(found) if text.startswith(name)]


def test_a_manifest_that_cannot_be_reached_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_file = Path.is_file

    def refuse(path: Path, **options: Any) -> bool:
        if path.name == "manifest.json":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path, **options)

    monkeypatch.setattr(Path, "is_file", refuse)
    assert messages(facts.gather(root)) == ["manifest.json cannot be read: Permission denied"]


def test_without_a_dtype_the_dtype_of_the_weights_counts(root: Path) -> None:
    (root / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": None}))
    assert facts.gather(root).config.dtype == "float32"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("chat_template.jinja", "x", "chat_template.jinja"),
        ("chat_template.json", '{"chat_template": "x"}', "chat_template.json"),
    ],
)
def test_a_separate_file_of_the_chat_template_comes_first(root: Path, name: str, content: str, expected: str) -> None:
    (root / name).write_text(content)
    assert facts.gather(root).chat_template == expected


def test_a_missing_template_and_a_missing_tokenizer_are_none(root: Path) -> None:
    (root / "tokenizer_config.json").unlink()
    (root / "tokenizer.json").unlink()
    found = facts.gather(root)
    assert (found.chat_template, found.tokenizer) == (None, None)


def test_the_files_that_name_code_of_the_model_are_listed(root: Path) -> None:
    (root / "config.json").write_text(json.dumps({**CONFIG, "auto_map": {"AutoConfig": "own.OwnConfig"}}))
    assert facts.gather(root).remote_code == ("config.json",)


def test_the_revision_comes_from_an_unedited_manifest(root: Path) -> None:
    described, problems = build(root, "", HashCache())
    assert described and not problems
    (root / "manifest.json").write_text(json.dumps(described.to_dict()))
    assert facts.gather(root).revision == described.revision
    (root / "manifest.json").write_text(json.dumps({**described.to_dict(), "revision": "0" * 12}))
    found = facts.gather(root)
    assert found.revision is None
    assert "manifest.json was edited" in messages(found)[0]


def test_weights_in_two_forms_count_once(root: Path, write_safetensors: Callable[..., None]) -> None:
    (root / "model.safetensors.index.json").unlink()
    write_safetensors(root / "consolidated.safetensors", {"a": 1000, "b": 1000})
    write_safetensors(root / "model-extra.safetensors", {"a": 1000})
    found = facts.gather(root)
    assert found.weights and found.weights.bytes == 8000
    assert "consolidated.safetensors" not in found.shards


def test_consolidated_weights_count_if_no_other_weights_are_there(
    tmp_path: Path, write_safetensors: Callable[..., None]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "consolidated.safetensors", {"a": 1000})
    assert facts.gather(tmp_path).shards == ("consolidated.safetensors",)


def write_sparse(root: Path, config: dict[str, Any], shards: int) -> int:
    """A model of Llama's kind in files of full length that take no space; returns the bytes of its weights."""
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    kv_size = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "lm_head.weight": (config["vocab_size"], hidden),
    }
    for layer in range(layers):
        for name, shape in {
            "self_attn.q_proj": (hidden, hidden),
            "self_attn.k_proj": (kv_size, hidden),
            "self_attn.v_proj": (kv_size, hidden),
            "self_attn.o_proj": (hidden, hidden),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
            "input_layernorm": (1, hidden),
            "post_attention_layernorm": (1, hidden),
        }.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    names = sorted(shapes)
    weight_map, total = {}, 0
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        header, position = {}, 0
        for name in names[shard::shards]:
            size = 2 * shapes[name][0] * shapes[name][1]
            header[name] = {"dtype": "BF16", "shape": shapes[name], "data_offsets": [position, position + size]}
            weight_map[name] = file
            position += size
        raw = json.dumps(header).encode()
        (root / file).write_bytes(struct.pack("<Q", len(raw)) + raw)
        os.truncate(root / file, 8 + len(raw) + position)
        total += position
    (root / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (root / "config.json").write_text(json.dumps(config))
    return total


def test_the_facts_of_140_gb_are_read_within_a_second(tmp_path: Path, published: dict[str, Any]) -> None:
    entry = published["llama-3-70b"]
    total = write_sparse(tmp_path, entry["config"], 30)
    begin = time.monotonic()
    found = facts.gather(tmp_path)
    seconds = time.monotonic() - begin
    assert messages(found) == []
    assert found.weights and found.weights.bytes == total
    # All parameters but those of the last norm, which the test leaves out.
    assert found.weights.parameters == entry["parameters"] - entry["config"]["hidden_size"]
    # Reading the headers takes 0.05 seconds. Reading the whole files would take minutes.
    assert seconds < 1
    expected = facts.from_config(entry["config"]).weights
    assert expected and found.weights.parts.layers == expected.parts.layers


@given(
    raw=st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=5
    )
)
def test_any_json_as_a_configuration_is_no_exception(raw: Any) -> None:
    config = raw if isinstance(raw, dict) else {"text_config": raw}
    found = facts.from_config(config)
    assert ModelFacts.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("text", ['[{"type": ["x"]}]', '[{"type": {}}]', "[1]", "{}", "[" * 100_000])
def test_a_damaged_pooling_file_of_sentence_transformers_does_not_make_a_model_pool(root: Path, text: str) -> None:
    (root / facts.POOLING_FILE).write_text(text)
    found = facts.gather(root)
    assert (found.pooled, messages(found)) == (False, [])
