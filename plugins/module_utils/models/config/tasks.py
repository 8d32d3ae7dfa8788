# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the tasks that an engine answers with a model and the flags of an entry. Private to the collection.

Sources: vLLM 0.32.0, vllm/config/model.py (_get_default_runner_type, _get_default_convert_type, get_pooling_task) and
enable_scoring_api in vllm/entrypoints/pooling/utils.py. The words of ARCHITECTURES come from the engine's classes:

- `generates`, `pools`: the model writes text; it returns vectors or classes.
- `transcribes`, `only transcribes`: the model accepts speech; it accepts only speech.
- `scores pairs`, `rewards`, `classifies tokens`, `late interaction`: the purpose of a model that pools; else vectors.
- `drafts`: the model is a part of another model, for speculative decoding.
- `stages`, `adapters`, `adapted embeddings`: the model can be divided by layers; it accepts LoRA adapters, also for its
  embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .architectures import ARCHITECTURES
from .config import Config
from .facts import ModelFacts
from .overrides import of_entry
from .task_names import CLASSIFY, EMBED, GENERATE, REWARD, SCORE, TOKEN_CLASSIFY, TOKEN_EMBED, TRANSCRIBE
from .values import as_dict

POOLING = "pooling"
"""The value of the flag `runner` for vectors, scores and classes."""

DRAFT = "draft"
"""The value of the flag `runner` for a part of another model, which answers no requests."""

AUTO, NONE = "auto", "none"
"""Values of the flags `runner` and `convert`."""

SUFFIXES: tuple[tuple[str, str, str], ...] = (
    *((suffix, GENERATE, NONE) for suffix in ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")),
    *((suffix, POOLING, EMBED) for suffix in ("ForTextEncoding", "EmbeddingModel")),
    *(
        (f"{suffix}Classification", POOLING, CLASSIFY)
        for suffix in ("ForSequence", "ForToken", "ForAudio", "ForImage", "ForVideo")
    ),
    ("ClassificationModel", POOLING, CLASSIFY),
    *((suffix, POOLING, EMBED) for suffix in ("ForRewardModeling", "RewardModel", "Model")),
)
"""Endings of architectures' names, with runner and conversion, in the engine's order (_SUFFIX_TO_DEFAULTS)."""

BY_ENGINE: Mapping[str, str] = {
    **{name: name for name in (EMBED, CLASSIFY)},
    "token_embed": TOKEN_EMBED,
    "token_classify": TOKEN_CLASSIFY,
}
"""Tasks by the engine's names, as in `pooler-config: {task: …}`."""


def tasks(facts: ModelFacts, flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The tasks that a model answers with an entry's flags, the task for probes first; empty for a draft, or if
    unknown."""
    config = of_entry(facts.config, flags)
    if not config.architectures:
        return ()
    words, asked = abilities(config), runner(facts, flags)
    if asked == DRAFT:
        return ()
    if asked == GENERATE:
        if "only transcribes" in words:
            return (TRANSCRIBE,)
        return (GENERATE, TRANSCRIBE) if "transcribes" in words else (GENERATE,)
    return _pooled(config, flags, words)


def certain(facts: ModelFacts, flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The tasks if they are certain, so that requests and golden prompts for other tasks may be refused; else empty.

    They are not certain for an architecture without any form in ARCHITECTURES: a later version of the engine, or a
    plugin, may give it more tasks.
    """
    known = any(map(_has_form, of_entry(facts.config, flags).architectures))
    return tasks(facts, flags) if known else ()


def runner(facts: ModelFacts, flags: Mapping[str, Any]) -> str:
    """The engine's runner: the flag `runner`, which may also be DRAFT, or else GENERATE or POOLING."""
    asked = str(flags.get("runner") or AUTO).lower()
    if asked != AUTO:
        return asked
    if str(flags.get("convert") or AUTO).lower() not in (AUTO, NONE) or facts.pooled:
        return POOLING
    for name in of_entry(facts.config, flags).architectures:
        if "pools" in (words := ARCHITECTURES.get(name, ())):
            return POOLING
        if "generates" in words:
            return GENERATE
        if suffix := _suffix(name):
            return suffix[0]
    return GENERATE


def abilities(config: Config) -> tuple[str, ...]:
    """The words for the first architecture in ARCHITECTURES; empty if the engine has none of them."""
    known = next((name for name in config.architectures if name in ARCHITECTURES), None)
    return ARCHITECTURES[known] if known else ()


def _pooled(config: Config, flags: Mapping[str, Any], words: tuple[str, ...]) -> tuple[str, ...]:
    task = BY_ENGINE.get(str(as_dict(flags.get("pooler-config")).get("task"))) or _task(config, flags, words)
    scores = task in (EMBED, TOKEN_EMBED) or (task == CLASSIFY and config.labels == 1)
    # A classifier with one class is usually a reranker, so SCORE comes first.
    return ((SCORE, task) if task == CLASSIFY else (task, SCORE)) if scores else (task,)


def _task(config: Config, flags: Mapping[str, Any], words: tuple[str, ...]) -> str:
    asked = str(flags.get("convert") or AUTO).lower()
    if any("ForTokenClassification" in name for name in config.architectures):
        return TOKEN_CLASSIFY
    if asked == AUTO and "pools" not in words:
        suffixes = (_suffix(name, POOLING) for name in config.architectures)
        return next((suffix[1] for suffix in suffixes if suffix), EMBED)
    if asked in (EMBED, CLASSIFY):
        return asked
    made_for = {
        "rewards": REWARD,
        "classifies tokens": TOKEN_CLASSIFY,
        "late interaction": TOKEN_EMBED,
        "scores pairs": CLASSIFY,
    }
    return next((task for word, task in made_for.items() if word in words), EMBED)


def _has_form(name: str) -> bool:
    """Whether the engine has an architecture, or makes it from another one with another ending (_normalize_arch in
    vllm/model_executor/models/registry.py)."""
    stems = [name.removesuffix(end) for end, *_rest in SUFFIXES if name.endswith(end)][:1]
    return name in ARCHITECTURES or any(f"{stem}{end}" in ARCHITECTURES for stem in stems for end, *_rest in SUFFIXES)


def _suffix(name: str, wanted: str = "") -> tuple[str, str] | None:
    """Runner and conversion by the ending of an architecture's name; None for another ending."""
    return next((rest for end, *rest in SUFFIXES if name.endswith(end) and wanted in ("", rest[0])), None)  # type: ignore[return-value]
