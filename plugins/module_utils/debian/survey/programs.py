# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognises programs that serve models, by their command lines. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

KINDS: Mapping[str, re.Pattern[str]] = {
    "vllm": re.compile(r"(?:^|[\s/])vllm(?:\s+serve\b|\.entrypoints\b)"),
    "sglang": re.compile(r"\bsglang(?:\.launch_server|\s+serve)\b"),
    "trtllm": re.compile(r"\btrtllm-serve\b"),
    "tgi": re.compile(r"\btext-generation-(?:launcher|router|server)\b"),
    "ollama": re.compile(r"\bollama\s+(?:serve|runner)\b"),
    "llama.cpp": re.compile(r"\b(?:llama-server|llama_cpp\.server)\b"),
    "triton": re.compile(r"\btritonserver\b"),
    "ray": re.compile(r"\b(?:raylet|gcs_server)\b|ray/dashboard/|\bray::"),
    "jupyter": re.compile(r"\bjupyter(?:hub|-lab|-notebook|-server)?\b|\bipykernel_launcher\b"),
    "litellm": re.compile(r"\blitellm\b"),
    "open-webui": re.compile(r"\bopen[-_]webui\b"),
}
"""The kinds of programs, each with what its command line has. The first match counts."""

MODEL_FLAGS = ("--model", "--model-path", "--model-id", "--model-repository", "--model_path", "-m")
"""Flags whose value is a model, a directory or a file."""

SUBCOMMANDS = ("serve", "trtllm-serve")
"""Words whose next word is the model, if this is no flag."""


@dataclass(frozen=True)
class Program:
    """A recognised program. Its command line is not kept, because the line may contain keys."""

    kind: str
    model: str
    """The model in the command line: a hub id or a path; empty without a model."""
    name: str
    """The file name of the program."""


def recognise(words: Sequence[str]) -> Program:
    """The program of a command line; its kind is empty if it is unknown."""
    line = " ".join(words)
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(line)), "")
    name = PurePosixPath(words[0]).name if words else ""
    return Program(kind, _model(words) if kind else "", name)


def _model(words: Sequence[str]) -> str:
    for number, word in enumerate(words):
        flag, sign, value = word.partition("=")
        if flag in MODEL_FLAGS and sign:
            return value
        following = words[number + 1] if number + 1 < len(words) else ""
        if word in MODEL_FLAGS and not (word == "-m" and _of_python(words[:number])):
            return following
        if PurePosixPath(word).name in SUBCOMMANDS and following not in ("", *SUBCOMMANDS) and following[0] != "-":
            return following
    return ""


def _of_python(before: Sequence[str]) -> bool:
    """Whether a flag after these words belongs to Python, as in python3 -u -m MODULE."""
    # A program that overwrites its command line can leave out its own name.
    program = PurePosixPath(before[0]).name if before else "python"
    return "python" in program and all(word.startswith("-") for word in before[1:])


def proxied(words: Sequence[str]) -> int:
    """The port in the container that a docker-proxy serves; 0 for any other program."""
    if not words or PurePosixPath(words[0]).name != "docker-proxy" or "-container-port" not in words:
        return 0
    port = words[words.index("-container-port") + 1 :][:1]
    return int(port[0]) if port and port[0].isdecimal() else 0
