# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: prints the keys of flags that take a JSON object, and their fixed values, as JSON.

tests/tools/catalogue sends this file there. A class that accepts keys beyond its fields is left out.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from importlib.metadata import version
from typing import Any

from vllm.config import ModelConfig, VllmConfig


def classes(kind: Any) -> list[type]:
    """The classes with fields in a type, such as that of an optional field."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return [kind]
    return [found for each in typing.get_args(kind) for found in classes(each)]


def choices(kind: Any) -> list[str]:
    """The texts of a type that has no other values but texts and none; empty for another type."""
    if typing.get_origin(kind) is typing.Literal:
        values = typing.get_args(kind)
        return [str(value) for value in values] if all(isinstance(value, str) for value in values) else []
    parts = [part for part in typing.get_args(kind) if part is not type(None)]
    found = [choices(part) for part in parts]
    return [value for values in found for value in values] if all(found) else []


def converted(kind: type) -> set[str]:
    """The fields whose values a class converts before it compares them."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    validators = decorators.field_validators.values() if decorators else ()
    return {field for one in validators if one.info.mode == "before" for field in one.info.fields}


def main() -> None:
    # Some flags belong to the configuration of the model. Names in its hints may be unknown at run time.
    own = {field.name: field.type for field in dataclasses.fields(ModelConfig) if not isinstance(field.type, str)}
    hints = {**own, **typing.get_type_hints(VllmConfig)}
    keys, fixed = {}, {}
    for field, hint in hints.items():
        kinds = classes(hint)
        if len(kinds) == 1 and (getattr(kinds[0], "__pydantic_config__", None) or {}).get("extra") == "forbid":
            names = sorted(each.name for each in dataclasses.fields(kinds[0]) if each.init)
            texts = typing.get_type_hints(kinds[0]).items()
            found = {name: sorted(set(choices(one))) for name, one in texts if name not in converted(kinds[0])}
            keys[field.replace("_", "-")] = names
            fixed[field.replace("_", "-")] = {name: found[name] for name in names if found.get(name)}
    print(json.dumps({"version": version("vllm").partition("+")[0], "keys": keys, "choices": fixed}))


if __name__ == "__main__":
    main()
