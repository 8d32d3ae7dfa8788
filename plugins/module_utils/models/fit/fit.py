# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether a model runs with given flags on given devices. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..config import overrides
from ..config.facts import ModelFacts
from ..config.overrides import KEY as OVERRIDES
from ..flags.variables import CPU_CACHE, LONGER
from . import abilities, architecture, division, drafts, flags, lora
from .advice import Case
from .capabilities import Capability
from .devices import Device
from .drafts import Draft
from .memory import Division, Estimate
from .misfit import Misfit
from .share import WHOLE, Share

NOT_COUNTED: Mapping[str, str] = {
    "decode-context-parallel-size": "the KV cache is counted as if this flag did not divide it",
    "prefill-context-parallel-size": "the KV cache is counted as if this flag did not divide it",
    "nnodes": "the GPUs of other nodes are not counted",
    "limit-mm-per-prompt": "the memory of images and sounds is not counted",
}
"""Flags that change the memory in a way that is not computed."""

INDIVISIBLE = frozenset({"heads", "kv_heads"})
"""Checks that must pass before the memory of a GPU has a meaning."""


@dataclass(frozen=True)
class Fit:
    """The answer. `misfits` are reasons why the instance would not start, `unknown` are facts that could not be
    checked, `notes` are further remarks for the operator."""

    estimate: Estimate
    misfits: tuple[Misfit, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool | None:
        """Whether it fits; None if there is no misfit, but something is unknown."""
        return False if self.misfits else None if self.unknown else True


def fit(
    facts: ModelFacts,
    entry: Mapping[str, object],
    devices: Sequence[Device],
    environment: Mapping[str, object] | None = None,
    lowest_capability: Capability | None = None,
    node_gpus: int | None = None,
    draft: ModelFacts | None = None,
    share: Share = WHOLE,
) -> Fit:
    """Check a model with the flags of its model registry entry on these devices.

    `environment` has variables of the engine, such as those of models/flags/variables.py. `lowest_capability` is the
    least compute capability for which the engine's image has code. `node_gpus` is the number of the node's GPUs, the
    limit of any advice. `draft` are the facts of the entry's draft model. `share` is this node's part of an engine over
    several nodes. Raises nothing.
    """
    given = {key: str(value) for key, value in (environment or {}).items()}
    own_draft = drafts.read(entry, draft)
    case, unread = _case(facts, entry, devices, given, node_gpus, own_draft, share)
    facts, asked = case.facts, case.flags
    divided = case.divided()
    broken = [Misfit("files", one.file or "directory", None, one.message) for one in facts.problems]
    broken += drafts.check(facts, own_draft)
    broken += architecture.check(case.original or facts, facts.config, entry, asked)
    misfits = _misfits(case, case.sizes(), lowest_capability)
    divisible = not any(one.check in INDIVISIBLE for one in misfits)

    def helps(misfit: Misfit, advice: Mapping[str, Any]) -> bool:
        """Whether the advice helps: with it, this misfit is gone, and there is no new one."""
        more = advice.get("gpus", len(devices)) - len(devices)
        variables = {key: str(value) for key, value in advice.items() if key == CPU_CACHE}
        changed = {**entry, **{key: value for key, value in advice.items() if key not in ("gpus", CPU_CACHE)}}
        there = [*devices, *([devices[0]] * more if more > 0 and devices else [])]
        other, _unread = _case(
            case.original or facts, changed, there, {**given, **variables}, node_gpus, own_draft, share
        )
        left = {one.check for one in _misfits(other, (), lowest_capability, advise=False)}
        return misfit.check not in left and left <= {one.check for one in misfits}

    misfits = [replace(one, fits=[advice for advice in one.fits if helps(one, advice)]) for one in misfits]
    return Fit(
        divided.estimate(asked.data_parallel_size) if divisible else Estimate(),
        (*unread, *broken, *misfits),
        tuple(_unknown(case, divided)),
        tuple(_notes(case, entry)),
    )


def _case(
    facts: ModelFacts,
    entry: Mapping[str, object],
    devices: Sequence[Device],
    environment: Mapping[str, str],
    node_gpus: int | None,
    draft: Draft,
    share: Share,
) -> tuple[Case, list[Misfit]]:
    """The case with the entry's overrides applied, and misfits of values that cannot be read."""
    asked, unread = flags.read(entry)
    changed = replace(facts, config=overrides.of_entry(facts.config, entry))
    return Case(changed, asked, devices, environment, node_gpus, facts, draft, share), unread


def _misfits(case: Case, sizes: Sequence[int], lowest: Capability | None, *, advise: bool = True) -> list[Misfit]:
    """The reasons why the instance would not start; those of memory only if its heads can be divided."""
    config = case.facts.config
    misfits = division.check(config, case.flags, sizes)
    misfits += lora.check(config, case.flags)
    misfits += abilities.check(config, case.flags, case.devices, sizes, lowest, case.environment, case.share)
    if case.devices and not any(one.check in INDIVISIBLE for one in misfits):
        misfits += case.misfits(advise=advise)
    return misfits


def _unknown(case: Case, divided: Division) -> Iterator[str]:
    """Messages about facts that could not be checked."""
    config = case.facts.config
    without = config.attention and not config.attention.full_layers and not config.attention.sliding_layers
    if not config.attention_heads and not without:
        yield "the number of attention heads: config.json does not have it"
    if divided.weights is None:
        yield f"the size of the weights: no file was read, and a {config.model_type} configuration is not enough"
    if divided.draft is None:
        name = case.draft.name or "the model's own layers for multi-token prediction"
        yield f"the size of the draft: no file of {name} was read, and its configuration is not enough"
    if divided.adapters is None:
        yield f"the memory of adapters: the matrices of a {config.model_type} model are unknown"
    if divided.overhead is None:
        yield "the memory to compute with: config.json lacks the hidden size or the vocabulary"
    if divided.length is None:
        yield "the longest request: config.json does not have it, set max-model-len"
    if divided.cache is None and divided.draft is not None:
        yield f"the KV cache: its layout in a {config.model_type} model is unknown"
    if not case.devices:
        return
    if divided.budget is None:
        yield f"the memory of {case.device.name}"
    if case.device.compute_capability is None and not case.on_cpu:
        yield f"the compute capability of {case.device.name}"


def _notes(case: Case, entry: Mapping[str, object]) -> Iterator[str]:
    """Messages that do not stop the instance from starting."""
    facts, config, asked = case.facts, case.facts.config, case.flags
    for key, message in NOT_COUNTED.items():
        value = entry.get(key)
        # One node, or a division by one, needs no note.
        if value is True or value not in (None, False, 1):
            yield f"{key}: {message}"
    if unread := overrides.unknown(overrides.read(entry.get(OVERRIDES))):
        yield f"{OVERRIDES}: the configuration is read without {', '.join(unread)}"
    if abilities.too_long(config, asked):
        yield (
            f"max-model-len: {asked.max_model_len} is more than the model's {config.max_length} tokens: {LONGER} lets "
            "the engine accept it, but answers to longer requests may be wrong"
        )
    if facts.weights and not facts.weights.measured:
        yield "the size of the weights is computed from config.json: no file was read"
    dtype = abilities.engine_dtype(config, asked, case.device)
    if asked.dtype == "auto" and config.dtype == "bfloat16" and dtype == "float16":
        yield f"{case.device.name} has no bfloat16: the engine computes in float16, in which some models overflow"
    if config.kv_heads and not config.mla and asked.tensor_parallel_size > config.kv_heads:
        heads, ranks = config.kv_heads, asked.tensor_parallel_size
        yield f"{heads} KV heads are repeated on {ranks} GPUs: more GPUs do not shrink the KV cache of each GPU"
    if config.modalities:
        yield f"the memory of inputs other than text ({', '.join(config.modalities)}) is not counted"
    if facts.remote_code:
        files = ", ".join(facts.remote_code)
        yield f"{files}: names the model's own code (auto_map). An engine with a class for this model does not need it"
    if facts.path and facts.chat_template is None and not entry.get("chat-template"):
        yield "there is no chat template: /v1/chat/completions will refuse requests"
