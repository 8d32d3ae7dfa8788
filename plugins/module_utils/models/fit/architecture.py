# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether the engine's class for a model supports the flags: runner, stages. Private to the collection.

Source: vLLM 0.32.0, ModelConfig in vllm/config/model.py. An architecture that is not in the engine's registry is not
checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..config.config import Config
from ..config.facts import ModelFacts
from ..config.task_names import GENERATE
from ..config.tasks import AUTO, NONE, POOLING, abilities, runner
from ..registry.pooling import GENERATING, MISTAKE, RUNNER
from .division import PP
from .flags import Flags
from .misfit import Misfit

CONVERT = "convert"

DRAFTS = "drafts"
"""The word in ARCHITECTURES for a draft of another model."""


def check(facts: ModelFacts, config: Config, entry: Mapping[str, Any], flags: Flags) -> Iterator[Misfit]:
    """All misfits of the engine's class; `config` is the configuration with the entry's overrides."""
    words = abilities(config)
    if not words:
        return
    asked, name = runner(facts, entry), config.architectures[0]
    if asked == GENERATE and "generates" not in words:
        if DRAFTS in words:
            yield Misfit(RUNNER, RUNNER, entry.get(RUNNER), f"{name} is a draft of another model, and cannot generate")
            return
        message = f"{name} gives vectors or classes, and cannot generate: remove the flag"
        yield Misfit(RUNNER, RUNNER, entry.get(RUNNER), message, [{RUNNER: POOLING}])
    if asked == POOLING and "pools" not in words and str(entry.get(CONVERT) or AUTO).lower() == NONE:
        message = f"{name} generates: the engine makes vectors or classes of it with embed or classify"
        yield Misfit(RUNNER, CONVERT, entry[CONVERT], message, [{CONVERT: "embed"}, {CONVERT: "classify"}])
    if asked == POOLING:
        for key in (key for key in GENERATING if entry.get(key)):
            yield Misfit(RUNNER, key, entry[key], MISTAKE)
    if flags.pipeline_parallel_size > 1 and "stages" not in words:
        message = f"the engine does not divide {name} by layers"
        yield Misfit("stages", PP, flags.pipeline_parallel_size, message, [{PP: 1}])
