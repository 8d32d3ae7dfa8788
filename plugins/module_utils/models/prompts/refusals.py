# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds entries and models for which a system prompt cannot be served. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.problems import Problem
from ..registry.entries import Entry
from .text import clean
from .wrapper import DEFAULT

KEY = "system-prompt"

HARMONY = "gpt_oss"
"""The model_type for which the engine renders chats in code, by Harmony (vllm/renderers/online_renderer.py)."""

NATIVE_ARCHITECTURES: Mapping[str, str] = {
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}
"""Architectures for which the engine by default uses a tokenizer mode other than hf, and renders in code (vLLM 0.32.0,
vllm/config/model.py). Without Kimi-Audio's mode, which renders the template."""

TEMPLATE_MODES = ("auto", "hf", "slow", "kimi_audio")
"""Values of tokenizer-mode with which the engine renders the model's template (vllm/renderers/registry.py)."""

_MISTRAL = (re.compile(r"consolidated[^/]*\.safetensors"), re.compile(r"tekken\.json|tokenizer\.model\.v[^/]*"))
"""If files match both, the engine uses Mistral's own tokenizer (vllm/tokenizers/registry.py)."""

FLAGS: Mapping[str, str] = {
    "chat-template": "the prompt goes into the model's own template: remove one key, or write the prompt into the file",
    "tokenizer": "templates come with tokenizers, and the prompt goes into the model's own template: remove one key",
    "skip-tokenizer-init": "without a tokenizer there is no chat: remove one key",
}
"""Engine flags with which a system prompt would not be served."""

_WAY_OUT = "remove it, and let the clients send the prompt as their system message"


def check_entry(entry: Entry) -> list[Problem]:
    """Problems of an entry itself with its system prompt."""
    if entry.system_prompt is None:
        return []
    where = f"models.{entry.name}"
    problems: list[Problem] = []
    try:
        clean(entry.system_prompt)
    except ValueError as error:
        problems.append(Problem(where, str(error), KEY))
    for flag, message in FLAGS.items():
        if entry.flags.get(flag) not in (None, False):
            problems.append(Problem(where, f"cannot go with {KEY}: {message}", flag, entry.flags[flag]))
    mode = _mode(entry.flags)
    if mode not in TEMPLATE_MODES:
        message = f"with this mode the engine renders no template, and {KEY} would not be served: set it to hf"
        problems.append(Problem(where, f"{message}, or {_WAY_OUT.replace('it', KEY, 1)}", "tokenizer-mode", mode))
    if entry.system_prompt_policy != DEFAULT and entry.flags.get("trust-request-chat-template") is True:
        message = "lets a request bring its own template, without the prompt: remove it, or system-prompt-policy"
        problems.append(Problem(where, message, "trust-request-chat-template", True))
    return problems


def check_model(
    entry: Entry, model_type: str | None, architectures: Iterable[str], files: Iterable[str]
) -> list[Problem]:
    """Problems of the model with a system prompt; `files` are the names of its files."""
    if entry.system_prompt is None:
        return []
    reason = _native(_mode(entry.flags), model_type, tuple(architectures), tuple(files))
    return [Problem(f"models.{entry.name}", reason, KEY)] if reason else []


def _native(mode: str, model_type: str | None, architectures: tuple[str, ...], files: tuple[str, ...]) -> str:
    """Why the engine would render no template of this model; empty if it would."""
    if model_type == HARMONY:
        return f"the engine writes gpt-oss's chats as Harmony, and renders no template: {_WAY_OUT}"
    if mode != "auto":
        return ""
    for architecture in architectures:
        if architecture in NATIVE_ARCHITECTURES:
            return f"the engine writes the chats of {architecture} in code, and renders no template: {_WAY_OUT}"
    if all(any(pattern.fullmatch(file) for file in files) for pattern in _MISTRAL):
        return (
            "the engine uses Mistral's own tokenizer for this model, which renders no template. If the model also has "
            f"a chat template, set tokenizer-mode: hf. Otherwise, {_WAY_OUT}"
        )
    return ""


def _mode(flags: Mapping[str, Any]) -> str:
    return str(flags.get("tokenizer-mode") or "auto").lower()
