# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: prints the keys of flags that take a JSON object, as JSON.

tests/tools/catalogue sends this file there. A class that accepts keys beyond its fields is left out.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from importlib.metadata import version
from typing import Any

from vllm.config import VllmConfig


def classes(kind: Any) -> list[type]:
    """The classes with fields in a type, such as that of an optional field."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return [kind]
    return [found for each in typing.get_args(kind) for found in classes(each)]


def main() -> None:
    hints = typing.get_type_hints(VllmConfig)
    keys = {}
    for field in dataclasses.fields(VllmConfig):
        kinds = classes(hints[field.name])
        if len(kinds) == 1 and (getattr(kinds[0], "__pydantic_config__", None) or {}).get("extra") == "forbid":
            names = sorted(each.name for each in dataclasses.fields(kinds[0]) if each.init)
            keys[field.name.replace("_", "-")] = names
    print(json.dumps({"version": version("vllm").partition("+")[0], "keys": keys}))


if __name__ == "__main__":
    main()
