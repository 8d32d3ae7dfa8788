# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: prints what each architecture of the engine's registry can do.

tests/tools/architectures sends this file there. The engine's modules import packages for pictures and sounds, which a
CPU image lacks. No answer here depends on these packages, so empty packages take their place.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import logging
import os
import re
import sys
import types
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

LACKING = frozenset({"torchvision", "torchaudio", "timm"})

LISTS = {
    "_REWARD_MODELS": "rewards",
    "_TOKEN_CLASSIFICATION_MODELS": "classifies tokens",
    "_LATE_INTERACTION_MODELS": "late interaction",
    "_SPECULATIVE_DECODING_MODELS": "drafts",
}
"""The word for the models in a list, by the name of this list in the engine's registry."""


class _Name(type):
    """A class that has every attribute: itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _Nothing(metaclass=_Name):
    def __init__(self, *_values: Any, **_named: Any) -> None:
        pass


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes an empty package for each package in LACKING."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        lacking = fullname.partition(".")[0] in LACKING
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if lacking else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def abilities(reported: Any, kind: Any, lists: Mapping[str, Any], name: str) -> list[str]:
    """What an architecture can do, by the engine's report about its class."""
    found = {
        "generates": reported.is_text_generation_model,
        "pools": reported.is_pooling_model,
        "transcribes": reported.supports_transcription,
        "only transcribes": reported.supports_transcription_only,
        "scores pairs": reported.score_type == "cross-encoder",
        **{word: name in lists[key] for key, word in LISTS.items()},
        "stages": reported.supports_pp,
        "adapters": bool(getattr(kind, "supports_lora", False)),
        "adapted embeddings": bool(getattr(kind, "supports_lora", False) and getattr(kind, "embedding_modules", None)),
    }
    return [word for word, able in found.items() if able]


def main() -> int:
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    logging.disable(logging.WARNING)
    from vllm.model_executor.models import registry

    # Transformers reads the packages' versions while it is imported, so the empty packages come after its import.
    sys.meta_path.append(StandIn())
    # vLLM inspects each class in a separate process, which would import torch again.
    registry._run_in_subprocess = lambda look: look()
    lists = {key: getattr(registry, key) for key in LISTS}
    found: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for name, model in registry.ModelRegistry.models.items():
        try:
            found[name] = abilities(model.inspect_model_cls(), model.load_model_cls(), lists, name)
        except Exception as error:
            problems[name] = f"{type(error).__name__}: {error}"[:200]
    versions = {"vllm": re.sub(r"\+.*", "", version("vllm"))}
    print(json.dumps({"versions": versions, "architectures": found, "problems": problems}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
