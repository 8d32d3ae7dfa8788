# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a model registry from a YAML file. Private to the collection. For the controller: it needs PyYAML."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ...core.problems import InputError, Problem


def load_registry(text: str, filename: str) -> dict[str, Any]:
    """The entries of a file: below its key `models`, or at the top without this key.

    Raises InputError with file, line and column if the text is not YAML, or has a key twice. Line and column start at
    1.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses equal keys. By default, the second of two equal keys wins silently."""

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                # PyYAML raises these for a date such as 2026-13-01, or a number without digits.
                message = f"this value is not valid ({error})"
                raise yaml.constructor.ConstructorError(None, None, message, node.start_mark) from None

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            # PyYAML adds the merged keys to the node itself, and may flatten the node again for a merge elsewhere. Only
            # the keys before the first merge are the author's.
            if id(node) not in flattened:
                flattened.add(id(node))
                self.refuse_equal_keys(node)
            super().flatten_mapping(node)

        def refuse_equal_keys(self, node: yaml.MappingNode) -> None:
            keys: dict[Any, yaml.Mark] = {}
            for key_node, _value in node.value:
                if key_node.tag in ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"):
                    continue
                key = self.construct_object(key_node, deep=True)
                if isinstance(key, Hashable) and key in keys:
                    line = keys[key].line + 1
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is already in line {line}", key_node.start_mark
                    )
                if isinstance(key, Hashable):
                    keys[key] = key_node.start_mark

    flattened: set[int] = set()
    try:
        data = yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{filename}:{mark.line + 1}:{mark.column + 1}" if mark else filename
        raise InputError([Problem(place, f"is not valid YAML: {error.problem or error.context}")]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = f"{filename}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        message = f"contains the character {error.character!r}, which YAML does not allow: remove it"
        raise InputError([Problem(place, message)]) from None
    except RecursionError:
        raise InputError([Problem(filename, "is nested too deeply")]) from None
    models = data.get("models", data) if isinstance(data, Mapping) else data
    if not isinstance(models, dict):
        found = "nothing" if models is None else type(models).__name__
        raise InputError([Problem(filename, f"must contain a dictionary of models by name, found {found}")])
    return models
