# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does only once what Ansible does again for each run, each template and each file.

A play gets the same values. In `make test-full`, Ansible does all of this by itself.
"""

from __future__ import annotations

import copy
import gc
import glob
import marshal
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from ansible._internal._templating import _jinja_bits as templating
from ansible.parsing import dataloader
from ansible.plugins import loader
from jinja2.environment import TemplateExpression

Key = tuple[str, ...]

File = tuple[str, bytes]
"""The path of a file, and its text."""

codes: dict[Key, CodeType] = {}
"""The code of templates, by what the code depends on."""

files: dict[File, Any] = {}
"""The data of YAML files."""

parsed: set[str] = set()
"""The paths of files that this process has parsed by itself."""

plugins: dict[tuple[str, str], Any] = {}
"""Filters and tests, by their kind and name."""

OURS = "ansible_collections.baremetal.inference.plugins."


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
    """Compile each template and condition once: most of them occur again in other tasks, hosts and runs."""
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
        # Jinja parses the condition, and calls `compiled` with the result.
        conditions.append(key)
        try:
            return express_again(environment, source, undefined_to_none)
        finally:
            conditions.pop()

    templating.AnsibleEnvironment.compile = compiled
    templating.AnsibleEnvironment.compile_expression = expressed


def copied(value: Any) -> Any:
    """A copy of the data of a YAML file. Unlike copy.deepcopy, the copy shares texts, which no code can change."""
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


def keep_files() -> None:
    """Parse each YAML file of roles once, and again only if a stage has another text of the file."""
    load_again = dataloader.DataLoader.load_from_file

    def loaded(reader: Any, file_name: str, cache: str = "all", **more: Any) -> Any:
        path = reader.path_dwim(file_name)
        if cache == "all" and "/roles/" in path and path not in reader._FILE_CACHE and Path(path).is_file():
            file = path, Path(path).read_bytes()
            if file in files:
                reader._FILE_CACHE[path] = files[file]
            else:
                parsed.add(path)
        return load_again(reader, file_name, cache, **more)

    dataloader.DataLoader.load_from_file = loaded


def keep_searches() -> None:
    """Search a directory for plugins once: Ansible searches for each task, and no run adds a plugin."""
    search = cache(glob.glob)
    loader.glob = SimpleNamespace(glob=search, iglob=search)


def keep_plugins() -> None:
    """Look up each filter and test once. For those of the collection, Ansible searches several files each time."""
    get_again = loader.Jinja2Loader.get

    def got(kind: Any, name: str, *given: Any, **more: Any) -> Any:
        if (kind.type, name) not in plugins:
            plugins[kind.type, name] = get_again(kind, name, *given, **more)
        return plugins[kind.type, name]

    loader.Jinja2Loader.get = got


def modules() -> set[str]:
    """The imported modules that are the same in each run. Stages have actions of their own."""
    return {
        name for name in sys.modules if name.startswith(("ansible.", OURS)) and not name.startswith(f"{OURS}action")
    }


def use() -> None:
    """Apply all savings of this module from now on, in this process and its copies."""
    keep_searches()
    # Ansible reads these at the beginning of each run, with their documentation.
    for kind in ("become", "callback", "connection", "inventory", "shell", "strategy"):
        list(getattr(loader, f"{kind}_loader").all(class_only=True))
    keep_templates()
    keep_files()
    keep_plugins()
    dataloader.copy = SimpleNamespace(deepcopy=copied)
    # A run ends before its garbage takes much memory, and shares the memory of this process.
    gc.collect()
    gc.disable()
    gc.freeze()


def known() -> dict[str, set[Any]]:
    """The names of what this process has, by kind."""
    return {"codes": {*codes}, "modules": modules(), "plugins": {*plugins}}


def leave(path: Path, before: Mapping[str, Collection[Any]]) -> None:
    """Write to `path` what this process has learned: the code of templates, and names of files, modules and plugins."""
    now = {kind: found - {*before[kind]} for kind, found in known().items()}
    left = ({key: codes[key] for key in now["codes"]}, parsed, now["modules"], now["plugins"])
    path.write_bytes(marshal.dumps(left))


def learn(path: Path) -> None:
    """Take over what a run has written to `path`, if any. This process reads files, modules and plugins itself."""
    if not path.exists():
        return
    made, paths, names, pairs = marshal.loads(path.read_bytes())
    path.unlink()
    codes.update(made)
    for each in paths:
        found = dataloader.DataLoader().load_from_file(each, cache="none", unsafe=True, trusted_as_template=True)
        files[each, Path(each).read_bytes()] = found
    for name in names:
        import_module(name)
    for kind, name in pairs:
        getattr(loader, f"{kind}_loader").get(name)
