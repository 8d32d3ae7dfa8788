# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: writes configurations of models, and prints what the engine reads from them.

tests/tools/oracle sends this file there, with the types that the engine runs with transformers' code as arguments.
Configuration classes of transformers and of the engine write most configurations. One process reads all configurations,
because the import of torch takes half a minute.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 40
"""Limit in seconds for one configuration, without the import of torch."""

SMALLER: tuple[dict[str, int], ...] = (
    {"num_hidden_layers": 24},
    {"num_hidden_layers": 36, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4},
    {"head_dim": 96, "num_key_value_heads": 2, "max_position_embeddings": 12345, "vocab_size": 33333},
    {"num_attention_heads": 24, "num_key_value_heads": 6, "hidden_size": 1728, "num_hidden_layers": 13},
    {"kv_lora_rank": 128, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64},
    dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 6),
)
"""Further settings of each type's language part, if its class has them."""

LEAST = 1
"""The index in SMALLER of the setting that is also written without the values that equal defaults of the classes."""

ROPES: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 1e6},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_theta": 5e5,
    },
    "default": {"rope_type": "default", "rope_theta": 1e4},
}

POOLED = ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES")
"""Lists of architectures that the engine derives from others. The engine recognises them by the end of their names."""

FLAT = {"num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4}
"""Sizes of the language part of a model that also reads images, at the top level of the configuration instead of in a
part of its own."""

STAND_IN = "LlamaForCausalLM"
"""Used instead of an architecture that this image cannot inspect. The configuration alone gives the sizes."""

ROPED = ("llama", "qwen2", "qwen3", "qwen3_moe", "gpt_oss", "deepseek_v3", "gemma3_text", "phi3", "granite")


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and configurations: every type that the engine serves, itself or with transformers' code, its other
    architectures, and ropes."""
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from vllm.model_executor.models.registry import ModelRegistry
    from vllm.transformers_utils import config as engine_config

    known = set(ModelRegistry.get_supported_archs())
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    others: dict[str, set[str]] = {}
    for name in sorted(dir(modeling_auto), key=lambda name: "CAUSAL_LM" not in name):
        if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES"):
            for model_type, architectures in getattr(modeling_auto, name).items():
                both = [architectures] if isinstance(architectures, str) else architectures
                if one := next((one for one in both if one in known), None):
                    found.setdefault(model_type, one)
                first.setdefault(model_type, both[0])
                others.setdefault(model_type, set()).update(one for one in both if name in POOLED or one in known)
    for model_type in sys.argv[1:]:
        if model_type in first:
            found.setdefault(model_type, first[model_type])
    others = {model_type: others[model_type] for model_type in found}
    for model_type, architecture in sorted(found.items()):
        with contextlib.suppress(Exception):
            kind = CONFIG_MAPPING[model_type]
            yield model_type, written(kind(), architecture)
            yield f"{model_type}/whole", written(kind(), architecture, use_diff=False)
            yield f"{model_type}/bare", {"model_type": model_type, "architectures": [architecture]}
            for number, changes in enumerate(SMALLER):
                with contextlib.suppress(Exception):
                    made = written(changed(kind, changes), architecture)
                    yield f"{model_type}/{number}", made
                    if number == LEAST:
                        least = without(made, written(kind(), architecture))
                        named = {"model_type": model_type, "architectures": [architecture]}
                        # `changed` writes the settings of a part deep inside at the top, where no class reads them.
                        text = kind(**least).get_text_config()
                        if all(getattr(text, key) == value for key, value in changes.items() if has(text, key)):
                            yield f"{model_type}/least", {**named, **least}
    for model_type, architecture in sorted(found.items()):
        with contextlib.suppress(Exception):
            whole = CONFIG_MAPPING[model_type](**FLAT)
            taken = whole.get_text_config()
            if taken is not whole and all(getattr(taken, key) == value for key, value in FLAT.items()):
                yield f"{model_type}/flat", {**FLAT, "model_type": model_type, "architectures": [architecture]}
    for model_type, architectures in others.items():
        for architecture in sorted(architectures - {found[model_type]}):
            with contextlib.suppress(Exception):
                yield f"{model_type}/{architecture}", written(CONFIG_MAPPING[model_type](), architecture)
    for model_type, kind in engine_config._CONFIG_REGISTRY.items():
        if model_type not in found:
            with contextlib.suppress(Exception):
                yield model_type, written(kind(), STAND_IN)
    for model_type in ROPED:
        for rope, parameters in ROPES.items():
            with contextlib.suppress(Exception):
                made = CONFIG_MAPPING[model_type](rope_parameters=dict(parameters), max_position_embeddings=16384)
                yield f"{model_type}/{rope}", written(made, found[model_type])


def changed(kind: Any, changes: dict[str, int]) -> Any:
    """A configuration with other settings of its language part, as far as this part has them.

    Raises ValueError if the language part has none of the settings, and the exceptions of the class.
    """
    whole = kind()
    text = whole.get_text_config()
    declared = {key: value for key, value in changes.items() if has(text, key)}
    if not declared:
        raise ValueError("nothing changes")
    place = next((key for key, value in vars(whole).items() if value is text), "")
    return kind(**({place: {"model_type": text.model_type, **declared}} if place else declared))


def without(config: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the values that equal defaults."""
    kept = {key: value for key, value in config.items() if key not in defaults or defaults[key] != value}
    for key, value in kept.items():
        if isinstance(value, dict) and isinstance(default := defaults.get(key), dict):
            kept[key] = without(value, default)
    return kept


def has(config: Any, key: str) -> bool:
    """Whether a configuration has a key. A key that only some layers have does not count."""
    try:
        return hasattr(config, key)
    except Exception:
        return False


def written(config: Any, architecture: str, *, use_diff: bool = True) -> dict[str, Any]:
    """The config.json that the class writes; all of its keys without `use_diff`."""
    config.architectures = [architecture]
    config.dtype = "bfloat16"
    made: dict[str, Any] = json.loads(config.to_json_string(use_diff=use_diff))
    return {**made, "model_type": config.model_type, "architectures": [architecture]}


def asked(directory: str) -> dict[str, Any]:
    """The engine's facts about the model in a directory. Raises the engine's exceptions, and ValueError."""
    from vllm.config import ModelConfig

    model = ModelConfig(model=directory, skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=True)
    facts = model.model_arch_config
    if not facts.total_num_hidden_layers:
        raise ValueError("the engine finds no layers in this configuration")
    return {
        "max_length": model.max_model_len,
        "layers": facts.total_num_hidden_layers,
        "attention_heads": facts.total_num_attention_heads,
        "kv_heads": facts.total_num_kv_heads,
        "head_size": facts.head_size,
        "hidden_size": facts.hidden_size,
        "vocabulary_size": facts.vocab_size,
        "experts": facts.num_experts,
        "mla": model.use_mla,
        "hybrid": model.is_hybrid,
        "attention_free": model.is_attention_free,
        "runner": model.runner_type,
    }


def late(_signal: int, _frame: Any) -> None:
    """Raises TimeoutError."""
    raise TimeoutError("no answer in time")


def main() -> int:
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    logging.disable(logging.WARNING)
    from vllm.model_executor.models import registry

    # vLLM inspects each type's class in a separate process, which would import torch again.
    registry._run_in_subprocess = lambda look: look()
    signal.signal(signal.SIGALRM, late)
    for name, config in cases():
        answer: dict[str, Any] = {"name": name, "config": config}
        with tempfile.TemporaryDirectory() as directory:
            for architecture in dict.fromkeys([*config["architectures"], STAND_IN]):
                stood_in = {**config, "architectures": [architecture]}
                (Path(directory) / "config.json").write_text(json.dumps(stood_in))
                signal.alarm(SECONDS)
                try:
                    answer["engine"] = asked(directory)
                    answer["stand_in"] = architecture == STAND_IN != config["architectures"][0]
                    break
                except Exception as error:
                    answer["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
                finally:
                    signal.alarm(0)
        print("ORACLE " + json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
