# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: prints the values of its configuration classes for keys that a config.json lacks.

tests/tools/class_defaults sends this file there. The output has facts only: declared values, other names of keys, types
of parts, and the order of kinds of layers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

LONGEST_PERIOD = 16
"""The longest period, in layers, for which pattern() looks."""

LAYER_NAMES = ("n_layer", "n_layers", "num_layers", "encoder_layers")

TEXT = ("FOR_CAUSAL_LM", "FOR_IMAGE_TEXT_TO_TEXT", "FOR_MULTIMODAL_LM", "FOR_SEQUENCE_CLASSIFICATION")
"""Parts of the names of transformers' lists of architectures that read text."""

PROBED_LAYERS = 96
"""A multiple of common periods (2, 3, 4, 6 and 8), and more than the first layers that some types treat apart."""


def classes() -> dict[str, Any]:
    """All configuration classes that transformers and the engine have, by type of model."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
    from vllm.transformers_utils import config as engine

    found: dict[str, Any] = {}
    for name in CONFIG_MAPPING_NAMES:
        with contextlib.suppress(Exception):
            found[name] = CONFIG_MAPPING[name]
    for name in engine._CONFIG_REGISTRY:
        with contextlib.suppress(Exception):
            found[name] = engine._CONFIG_REGISTRY[name]
    return found


def served() -> tuple[set[str], set[str]]:
    """The types of models with an architecture that the engine has, and those that it runs with transformers' code."""
    from transformers.models.auto import modeling_auto
    from vllm.model_executor.models.registry import ModelRegistry
    from vllm.transformers_utils import config as engine

    known = set(ModelRegistry.get_supported_archs())
    own = set(engine._CONFIG_REGISTRY)
    others: dict[str, set[str]] = {}
    for name in dir(modeling_auto):
        if name.endswith("_MAPPING_NAMES"):
            for model_type, architectures in getattr(modeling_auto, name).items():
                both = {architectures} if isinstance(architectures, str) else set(architectures)
                if known & both:
                    own.add(model_type)
                elif any(word in name for word in TEXT):
                    others.setdefault(model_type, set()).update(both)
    return own, {model_type for model_type in set(others) - own if any(map(adopted, others[model_type]))}


def adopted(architecture: str) -> bool:
    """Whether the engine runs a class of transformers as it is (_try_resolve_transformers in vLLM's registry). Of
    types with an encoder and a decoder, it runs only classes ForCausalLM."""
    import transformers

    with contextlib.suppress(Exception):
        kind = getattr(transformers, architecture)
        decodes = not kind.config_class().is_encoder_decoder or architecture.endswith("ForCausalLM")
        return bool(decodes and (kind.is_backend_compatible() or kind._can_set_attn_implementation()))
    return False


def declared(kind: Any) -> dict[str, Any]:
    """The values that a class declares for its keys: numbers, texts and switches."""
    values = {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    # The engine's own classes have a constructor instead.
    values |= {one.name: one.default for one in inspect.signature(kind.__init__).parameters.values()}
    return {name: value for name, value in values.items() if isinstance(value, (int, float, str, bool))}


def parts(kind: Any) -> Iterator[tuple[str, str]]:
    """The types of a class's parts, each with the part's key. Parts without a type are left out."""
    made: Any = None
    if not getattr(kind, "sub_configs", None):
        # The engine's own classes make their parts in the constructor.
        with contextlib.suppress(Exception):
            inner = {key: getattr(value, "model_type", "") for key, value in vars(kind()).items()}
            yield from ((key, name) for key, name in inner.items() if isinstance(name, str) and name)
    for key, part in (getattr(kind, "sub_configs", None) or {}).items():
        name = getattr(part, "model_type", "")
        if not name:
            # A part that may have any type: its default type is that of the class without arguments.
            with contextlib.suppress(Exception):
                made = made or kind()
                name = getattr(getattr(made, key, None), "model_type", "")
        if name:
            yield key, name


def own_parts(kind: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """The classes of parts, by their key, that differ from the class with the same type in `known`.

    The engine replaces a class by the type's name, but a class that makes its parts itself keeps their classes.
    """
    classes = {key: part for key, part in (getattr(kind, "sub_configs", None) or {}).items() if inspect.isclass(part)}
    own = {
        key: part
        for key, part in classes.items()
        if known.get(name := getattr(part, "model_type", ""), part) is not part and name
    }
    # The language part, or the part that holds it, may have a type that no list has.
    with contextlib.suppress(Exception):
        made = kind()
        text = made.get_text_config()
        holders = {key: value for key, value in vars(made).items() if value is text or text in _values(value)}
        own |= {key: type(part) for key, part in holders.items() if known.get(part.model_type) is not type(part)}
    return own


def _values(part: Any) -> list[Any]:
    """The values of a part; none for another value."""
    return list(vars(part).values()) if getattr(part, "model_type", "") else []


def scalars(config: Any) -> dict[str, Any]:
    """The numbers, texts and switches of a configuration, without its type."""
    found = config.to_dict().items()
    return {key: value for key, value in found if isinstance(value, (int, float, str, bool)) and key != "model_type"}


def changed(before: Any, after: Any) -> dict[str, Any]:
    """The values of one configuration that differ from those of another one."""
    old = scalars(before)
    return {key: value for key, value in scalars(after).items() if old.get(key) != value}


def filled(kind: Any, key: str, part: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that an owner gives to a part, where they differ from those of the part's class: to a part that lacks
    them, and to a part that is missing as a whole."""
    lacking: dict[str, Any] = {}
    missing: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        given = getattr(kind(**{key: {"model_type": part.model_type}}), key)
        lacking = changed(part(), given)
        wider = getattr(kind(**{key: {"model_type": part.model_type, "hidden_size": 2 * given.hidden_size}}), key)
        if lacking and wider.head_dim == given.head_dim:
            # The class computes the size of a head from the hidden size, the owner declares the same size.
            lacking["head_dim"] = given.head_dim
    with contextlib.suppress(Exception):
        made = getattr(kind(), key)
        missing = changed(given, made)
        if missing:
            missing["head_dim"] = made.head_dim
    return lacking, missing


def pattern(kind: Any) -> list[str]:
    """One period of the order of kinds of layers, if the class computes the kinds from the number of layers."""
    with contextlib.suppress(Exception):
        types = list(kind(num_hidden_layers=PROBED_LAYERS).layer_types)
        if len(types) == PROBED_LAYERS:
            for length in range(1, LONGEST_PERIOD + 1):
                if all(types[index] == types[index % length] for index in range(PROBED_LAYERS)):
                    return types[:length]
    return []


def differing(kind: Any) -> dict[str, dict[str, int]]:
    """Sizes of heads and numbers of KV heads by kind of layer, if the layers of a class differ."""
    found: dict[str, dict[str, int]] = {}
    with contextlib.suppress(Exception):
        made = kind()
        types = list(made.layer_types) if made.is_heterogeneous else []
        for index, layer in enumerate(made.per_layer_config[: len(types)]):
            for key in ("head_dim", "num_key_value_heads"):
                if getattr(layer, key) != declared(kind).get(key):
                    found.setdefault(types[index], {})[key] = getattr(layer, key)
    return found


def derived(kind: Any) -> dict[str, Any]:
    """Values that a class computes and does not declare: the numbers of layers and attention heads, the head
    size, or the factor between the head size and its share of the hidden size."""
    values: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        made = kind()
        known = declared(kind)
        if not known.get("num_hidden_layers") and not set(LAYER_NAMES) & set(known):
            values["num_hidden_layers"] = int(made.num_hidden_layers)
        if "num_attention_heads" not in {*known, *(getattr(kind, "attribute_map", None) or {})}:
            values["num_attention_heads"] = int(made.num_attention_heads)
        ratios = set()
        for factor in (1, 2):
            other = kind(hidden_size=factor * made.hidden_size)
            ratios.add(other.head_dim * other.num_attention_heads / other.hidden_size)
        if "head_dim" not in known and len(ratios) == 1 and (ratio := ratios.pop()) not in (0, 1):
            values["head_ratio"] = ratio
        if "head_dim" not in known and other.head_dim == made.head_dim:
            values["head_dim"] = int(made.head_dim)
    return values


def followed(kind: Any) -> dict[str, str]:
    """The key with the size of a head, if a class computes this size from another key, even if the size is given."""
    key = "qk_rope_head_dim"
    with contextlib.suppress(Exception):
        if all(kind(**{key: size, "head_dim": 2 * size}).head_dim == size for size in (32, 96)):
            return {"head_dim": key}
    return {}


def describe() -> dict[str, Any]:
    """All facts by type of model, for the types that the engine serves and all their parts. A part with a class of its
    own has the name OWNER/KEY."""
    known = classes()
    own_types, others = (sorted(types & set(known)) for types in served())
    # The loop takes the last entry first: the engine's own types come before the adopted ones, so that a part of both
    # counts as the engine's own.
    waiting, found = [(name, known[name], name in others) for name in [*others, *own_types]], {}
    while waiting:
        name, kind, taken = waiting.pop()
        if name in found:
            continue
        own = {f"{name}/{key}": (key, part) for key, part in own_parts(kind, known).items()}
        inner = {**dict(parts(kind)), **{key: place for place, (key, _part) in own.items()}}
        values = {**derived(kind), **declared(kind)}
        classes_of = {key: known.get(part) for key, part in inner.items()} | dict(own.values())
        gifts = {key: filled(kind, key, part) for key, part in classes_of.items() if part is not None}
        found[name] = {
            "values": {**values, "model_type": kind.model_type} if "/" in name else values,
            "names": {**followed(kind), **(getattr(kind, "attribute_map", None) or {})},
            "parts": inner,
            "layers": pattern(kind),
            "kinds": differing(kind),
            "lacking": {key: lacking for key, (lacking, _missing) in gifts.items() if lacking},
            "missing": {key: missing for key, (_lacking, missing) in gifts.items() if missing},
            "adopted": taken,
        }
        waiting += [(place, part, taken) for place, (_key, part) in own.items()]
        waiting += [(name, known[name], taken) for name in inner.values() if name in known]
    return found


def main() -> int:
    versions: Mapping[str, str] = {name: re.sub(r"\+.*", "", version(name)) for name in ("vllm", "transformers")}
    print(json.dumps({"versions": versions, "types": describe()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
