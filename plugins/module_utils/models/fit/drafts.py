# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speculative decoding: computes a draft's memory on each GPU, and checks whether it matches its model. Private to the
collection.

Source: vLLM 0.32.0, vllm/config/speculative.py. A draft is divided like its model, or by `draft_tensor_parallel_size`.
Its layers keep every token of a request, in blocks with as many tokens as the model's blocks
(vllm/v1/core/kv_cache_utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..config.facts import ModelFacts
from ..config.values import positive
from ..registry.drafts import KEY, NO_MODEL, asked, method, named
from .cache import bytes_per_token_and_layer
from .devices import Device
from .flags import Flags
from .misfit import Misfit
from .weights import bytes_per_gpu

HEADS = frozenset({"eagle", "eagle3", "medusa", "mlp_speculator", "dflash", "dspark", "mtp"})
"""Methods whose draft is made for one model and may have its own vocabulary. Only with `draft_model` must both
vocabularies be equal."""


@dataclass(frozen=True)
class Draft:
    """The draft of an entry. `name` is the entry of the draft model, None if the method needs no model; `facts` are the
    facts of this model, None if unknown."""

    name: str | None = None
    method: str = ""
    facts: ModelFacts | None = None
    ranks: int | None = None
    """Number of GPUs over which the draft is divided; None for the same number as its model."""
    other_vocabulary: bool = False
    """Whether the draft may have its own vocabulary."""

    @property
    def predicts(self) -> bool:
        """Whether the model's own layers for multi-token prediction are the draft."""
        return self.name is None and "mtp" in self.method


NO_DRAFT = Draft()


def read(entry: Mapping[str, Any], facts: ModelFacts | None = None) -> Draft:
    """The draft of an entry; `facts` are the facts of the draft model."""
    given = asked(entry)
    if not given or method(given) in NO_MODEL:
        return NO_DRAFT
    return Draft(
        name=named(entry),
        method=method(given) or "draft_model",
        facts=facts,
        ranks=positive(given.get("draft_tensor_parallel_size")),
        other_vocabulary=given.get("use_heterogeneous_vocab") is True,
    )


def check(target: ModelFacts, draft: Draft) -> Iterator[Misfit]:
    """Misfits of a draft with its model."""
    facts = draft.facts
    if draft.name is None or facts is None:
        return
    for problem in facts.problems:
        yield Misfit("draft", KEY, draft.name, f"{problem.file or 'directory'} of this draft: {problem.message}")
    found, wanted = facts.config.vocabulary_size, target.config.vocabulary_size
    if _needs_same_vocabulary(draft, facts) and found and wanted and found != wanted:
        message = (
            f"config.json of this draft has a vocabulary of {found} tokens, that of the model has {wanted}: take a "
            "draft of the same family, or set use_heterogeneous_vocab: true in it"
        )
        yield Misfit("draft", KEY, draft.name, message)


def _needs_same_vocabulary(draft: Draft, facts: ModelFacts) -> bool:
    """Whether the draft is an independent model, which must have the vocabulary of its target."""
    names = (str(draft.name).lower(), str(facts.config.model_type), *facts.config.architectures)
    head = any(head in one.lower() for head in HEADS for one in names)
    return draft.method == "draft_model" and not draft.other_vocabulary and not head


def _alone(draft: Draft, flags: Flags) -> Flags:
    """The flags for a draft: one stage, without flags that change the weights of its model."""
    ranks = draft.ranks or flags.tensor_parallel_size
    return replace(flags, tensor_parallel_size=ranks, pipeline_parallel_size=1, cpu_offload_gb=0, quantization=None)


def weight_bytes(target: ModelFacts, draft: Draft, flags: Flags, device: Device, dtype: str) -> int | None:
    """Bytes of a draft's weights on one GPU; 0 without a draft, None if unknown."""
    if draft.predicts:
        # One more layer, which uses embedding and head of the model.
        layers = target.weights.parts.layers if target.weights else ()
        return round(layers[-1] / flags.tensor_parallel_size) if layers else None
    if draft.name is None:
        return 0
    facts = draft.facts
    if facts is None or facts.weights is None:
        return None
    return bytes_per_gpu(facts.weights, facts.config, _alone(draft, flags), device, dtype)


def cache_bytes(target: ModelFacts, draft: Draft, flags: Flags, dtype: str) -> int | None:
    """Bytes of cache for one token in all layers of a draft, on one GPU; 0 without a draft, None if unknown."""
    if draft.predicts:
        return bytes_per_token_and_layer(target.config, flags, dtype, target.config.full_heads)
    if draft.name is None:
        return 0
    config = draft.facts.config if draft.facts else None
    each = bytes_per_token_and_layer(config, _alone(draft, flags), dtype) if config and config.layers else None
    return None if config is None or each is None else (config.layers or 0) * each
