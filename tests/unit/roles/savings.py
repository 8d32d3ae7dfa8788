# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible does again for each run, each template and each file, done once.

A play gets the same values. In `make test-full`, Ansible does all of this by itself.
"""

from __future__ import annotations

import copy
import gc
import marshal
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from ansible._internal._templating import _jinja_bits as templating
from ansible.parsing import dataloader
from ansible.plugins.loader import become_loader, connection_loader, shell_loader
from jinja2.environment import TemplateExpression

Key = tuple[str, ...]

codes: dict[Key, CodeType] = {}
"""The code of templates, by what the code depends on."""


def key_of(environment: Any, source: str) -> Key:
    """The text of a template, and the settings that Ansible compiles the text with."""
    context = templating._TemplateCompileContext.current(optional=True)
    settings = [getattr(environment, name) for name in templating._TEMPLATE_OVERRIDE_FIELD_NAMES]
    return (
        str.__str__(source),
        repr(context and context.escape_backslashes),
        repr(settings),
        type(environment).__name__,
    )


def keep_templates() -> None:
    """Compile each template and condition once: a task has most of them from other tasks, hosts and runs."""
    compile_again = templating.AnsibleEnvironment.compile
    express_again = templating.AnsibleEnvironment.compile_expression
    conditions: list[Key] = []

    def compiled(environment: Any, source: Any, *given: Any, **more: Any) -> Any:
        if isinstance(source, str) and not (given or more):
            key = key_of(environment, source)
        elif conditions:
            key = conditions[-1]
        else:
            return compile_again(environment, source, *given, **more)
        if key not in codes:
            codes[key] = compile_again(environment, source, *given, **more)
        return codes[key]

    def expressed(environment: Any, source: str, undefined_to_none: bool = True) -> Any:
        key = ("condition", *key_of(environment, source))
        if key in codes:
            names = environment.make_globals(None)
            template = environment.template_class.from_code(environment, codes[key], names, None)
            return TemplateExpression(template, undefined_to_none)
        # Jinja parses a condition, and has `compiled` make the code of what it has parsed.
        conditions.append(key)
        try:
            return express_again(environment, source, undefined_to_none)
        finally:
            conditions.pop()

    templating.AnsibleEnvironment.compile = compiled
    templating.AnsibleEnvironment.compile_expression = expressed


def copied(value: Any) -> Any:
    """The copy of what a YAML file holds. Unlike copy.deepcopy, the copy shares texts, which no code can change."""
    found: Any
    if isinstance(value, dict):
        found = copy.copy(value)
        for key, one in value.items():
            found[key] = copied(one)
        return found
    if isinstance(value, list):
        found = copy.copy(value)
        found[:] = [copied(one) for one in value]
        return found
    return value


def use() -> None:
    """Save from now on, in this process and its copies."""
    # PlaybookExecutor reads these at the beginning of each run, with their documentation.
    for loader in (connection_loader, shell_loader, become_loader):
        list(loader.all(class_only=True))
    keep_templates()
    dataloader.copy = SimpleNamespace(deepcopy=copied)
    # A run ends before its garbage takes much memory, and shares the memory of this process.
    gc.collect()
    gc.disable()
    gc.freeze()


def read_templates(path: Path) -> frozenset[Key]:
    """Have the templates that a run has left, if there was one. Returns what is known then."""
    if path.exists():
        codes.update(marshal.loads(path.read_bytes()))
        path.unlink()
    return frozenset(codes)


def write_templates(path: Path, known: frozenset[Key]) -> None:
    """Leave the templates that were not known."""
    path.write_bytes(marshal.dumps({key: code for key, code in codes.items() if key not in known}))
