# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a LoRA adapter belongs to a model. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..adapter_facts import TOWER, AdapterFacts
from ..config.config import Config
from ..file_names import ADAPTER_CONFIG

_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def mistakes(facts: AdapterFacts, base: Config, base_model: str) -> Iterator[str]:
    """Why an engine with this base cannot serve an adapter. `base_model` is the source of the base."""
    for problem in facts.problems:
        yield f"{problem.file or 'its directory'} {problem.message}"
    if other := other_base(facts, base_model):
        yield (
            f"was trained on {other}, and its base is {base_model}: name the entry of {other} as base. If the weights "
            f"of both are the same, correct base_model_name_or_path in a copy of {ADAPTER_CONFIG}"
        )
    if base.layers and facts.layers > base.layers:
        yield f"has weights for {facts.layers} layers, and its base has {base.layers}: it belongs to another model"
    wanted = _sizes(base)
    for module, size, out in facts.shapes:
        name = module.rpartition(".")[2]
        known = wanted.get(name, ())
        if known and not TOWER.search(module) and (size, out) not in known:
            form = " or ".join(f"{inputs} x {outputs}" for inputs, outputs in known)
            yield f"has {name} of {size} x {out}, and its base has {form}: it belongs to another model"


def other_base(facts: AdapterFacts, base_model: str) -> str:
    """The hub's model that an adapter was trained on, if the base has another name; else empty.

    The names of copies and of quantized forms of a model usually contain the model's name.
    """
    if not _HUB.fullmatch(facts.base) or not _HUB.fullmatch(base_model):
        return ""
    trained, served = (re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].lower()) for name in (facts.base, base_model))
    return "" if trained in served or served in trained else facts.base


def _sizes(base: Config) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Inputs and outputs of the modules whose sizes are known; several if some models have another form."""
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    hidden, heads, size = base.hidden_size, base.attention_heads, base.head_size
    kv_heads, inner = base.kv_heads, base.intermediate_size
    one_form = not (base.mla or base.full_heads or base.sliding_heads)
    if hidden and heads and size and kv_heads and one_form:
        queries, keys = heads * size, kv_heads * size
        # The second form has a gate for each query, as in Qwen3-Next.
        found["q_proj"] = ((hidden, queries), (hidden, 2 * queries))
        found["k_proj"] = found["v_proj"] = ((hidden, keys),)
        found["o_proj"] = ((queries, hidden),)
        found["qkv_proj"] = ((hidden, queries + 2 * keys),)
    if hidden and inner and not base.experts:
        found["gate_proj"] = found["up_proj"] = ((hidden, inner),)
        found["down_proj"] = ((inner, hidden),)
        found["gate_up_proj"] = ((hidden, 2 * inner),)
    return found
