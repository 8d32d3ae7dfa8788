#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that only an engine's adapter (plugins/module_utils/engine/adapters) and the catalogues of its flags
(plugins/module_utils/models/flags) have the engine's words.

Other code asks the adapter, so that another engine is one more file. The unit's name, `vllm@NAME`, and the role `vllm`
with its variables are no words of the engine.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

HOMES = ("plugins/module_utils/engine/adapters/", "plugins/module_utils/models/flags/")

PLACES = ("plugins/**/*.py", "plugins/**/*.yml", "roles/**/*", "playbooks/**/*.yml")

WORDS: Mapping[str, re.Pattern[str]] = {
    "metric": re.compile(r"\bvllm:[a-z]\w*"),
    "variable": re.compile(r"\bVLLM_[A-Z]\w*"),
    # Paths of an engine's source, such as vllm/v1/core, do not match, nor does Prometheus' /api/v1.
    "path": re.compile(r"(?<!\w)/v1/[a-z][a-z/_]*"),
    "command": re.compile(r"\bvllm serve\b|--(?:served-model-name|shutdown-timeout)\b"),
    "package": re.compile(r"\b(?:from|import) vllm\b"),
}

TITLE = re.compile(r"\bvLLM\b")
"""The engine's name in a message. Docstrings and comments may name sources, and the texts of modules may tell operators
whose flags an entry takes."""

TEXTS = ("DOCUMENTATION", "EXAMPLES", "RETURN")
"""Variables with the texts of a module."""

EXCEPTIONS: Mapping[str, tuple[frozenset[str], str]] = {
    "roles/monitoring/files/rules/recording.yml": (
        frozenset({"metric"}),
        "the one place that maps an engine's metrics to ours; alerts and dashboards use only the mapped names",
    ),
    "roles/vllm/vars/main.yml": (frozenset({"variable"}), "maps the role's variable vllm_api_key to the engine's"),
    "roles/vllm/meta/argument_specs.yml": (frozenset({"command"}), "tells an operator whose flags an entry takes"),
    "plugins/doc_fragments/engine.py": (frozenset({"variable"}), "an example for an operator"),
    "plugins/module_utils/engine/first_releases.py": (
        frozenset({"command"}),
        "reads releases from before 0.2.0: all of them run vLLM",
    ),
    "plugins/module_utils/debian/survey/services.py": (
        frozenset({"path"}),
        "asks programs of others, on machines that are not nodes yet, for their models",
    ),
    "plugins/module_utils/gateway/names.py": (frozenset({"path"}), "the API that the gateway offers to clients"),
    "plugins/module_utils/gateway/settings.py": (
        frozenset({"path", "variable"}),
        "the API that the gateway offers to clients, and the source of a limit",
    ),
    "plugins/module_utils/monitoring/config.py": (
        frozenset({"variable"}),
        "names the source of a time; Ansible would send the adapters with the module monitoring_server",
    ),
    "roles/gateway/defaults/main.yml": (frozenset({"path"}), "the API that the gateway offers to clients"),
    "roles/gateway/meta/argument_specs.yml": (frozenset({"path"}), "the API that the gateway offers to clients"),
    "plugins/module_utils/models/fit/fit.py": (frozenset({"path"}), "names the API to an operator"),
    "plugins/module_utils/models/fit/overhead.py": (frozenset({"command"}), "names the source of a formula"),
    "plugins/module_utils/node/cli/plan.py": (frozenset({"command"}), "tells an operator whose flags follow --"),
}
"""Files with words of an engine outside its adapter: which kinds of words, and why."""


def problems(files: Mapping[str, str], exceptions: Mapping[str, tuple[frozenset[str], str]] = EXCEPTIONS) -> list[str]:
    """Every engine word outside the adapters, and every exception that is no longer needed."""
    found, used = [], set()
    for file, text in files.items():
        if file.startswith(HOMES):
            continue
        allowed = exceptions.get(file, (frozenset(), ""))[0]
        for number, kind, word in words(file, text):
            if kind in allowed:
                used.add((file, kind))
            else:
                where = "ask the engine's adapter (engine/adapters), or name the reason in EXCEPTIONS of"
                found.append(f"{file}:{number}: {word} is an engine's {kind}: {where} {Path(__file__).name}")
    for file, (kinds, _reason) in exceptions.items():
        found += [
            f"{file}: has no engine's {kind} any more: remove the exception from EXCEPTIONS"
            for kind in sorted(kinds)
            if (file, kind) not in used
        ]
    return found


def words(file: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Each word of an engine in a file: number of the line, kind, word."""
    for number, line in enumerate(text.splitlines(), 1):
        for kind, pattern in WORDS.items():
            yield from ((number, kind, match[0]) for match in pattern.finditer(line))
    if file.endswith(".py"):
        yield from ((number, "title", "vLLM") for number, message in messages(text) if TITLE.search(message))


def messages(text: str) -> Iterator[tuple[int, str]]:
    """The texts in a program that are neither docstrings nor the texts of a module, each with its line."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    no_messages = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        or (isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in TEXTS for one in node.targets))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in no_messages:
            yield node.lineno, node.value


def read() -> dict[str, str]:
    """The texts of the collection that may not have an engine's words, by path."""
    paths = sorted({path for place in PLACES for path in ROOT.glob(place) if path.is_file()})
    texts = {}
    for path in paths:
        try:
            texts[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def main() -> int:
    found = problems(read())
    if found:
        print("\n".join(found), file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
