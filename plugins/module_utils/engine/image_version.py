# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of the engine in an image. Private to the collection.

The label org.opencontainers.image.version does not count: vLLM's images inherit the label from Ubuntu's image.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core import files
from . import adapters
from .container import python_argv
from .inventory import present_instances

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command: exit code, output, errors."""

# The tag counts only where the name of the repository has the engine's name: elsewhere a tag may count something else.
_TAG = r"(?:^|/)[^/:@]*%s[^/:@]*:v?(\d+\.\d+\.\d+(?:rc\d+|\.post\d+|\.dev\d+)?)(?![\d.])[^/@]*(?:@|$)"
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")


def find(given: str, image: str, registry: Path, docker: str | None, run: Run) -> str:
    """The version of the engine in an image, such as 0.32.0+cpu; empty where unknown.

    The first source that has a version counts: `given` by the operator; `registry`, the node's registry.json, where an
    earlier run has recorded the version of this image; the image itself, where the node has the image (takes a second);
    the tag.
    """
    return given or _kept(registry, image) or (docker and _asked(docker, image, run)) or _tagged(image)


def of_instances(instances: Sequence[Any], registry: Path, docker: str | None, run: Run) -> dict[str, str]:
    """The version of the engine in each image that an instance names itself, by image."""
    images = {str(raw["image"]) for raw in present_instances(instances) if isinstance(raw, dict) and raw.get("image")}
    return {image: find("", image, registry, docker, run) for image in sorted(images)}


def kept_as(image: str, version: str, given: str) -> dict[str, Any]:
    """The entry for registry.json: the version in use, and whether the version comes from the operator."""
    return {"image": image, "version": version, "given": bool(given)}


def _kept(registry: Path, image: str) -> str:
    state = None
    # engine_release writes a damaged file anew.
    with contextlib.suppress(OSError, ValueError):
        state = files.read_json(registry)
    state = state if isinstance(state, dict) else {}
    own = state.get("own_engines")
    for engine in (state.get("engine"), *(own if isinstance(own, list) else ())):
        if isinstance(engine, dict) and engine.get("image") == image and engine.get("given") is False:
            return str(engine.get("version") or "")
    return ""


def _asked(docker: str, image: str, run: Run) -> str:
    question = f"from importlib.metadata import version; print(version('{adapters.get().package}'))"
    code, output, _errors = run(python_argv(docker, image, question))
    last = output.strip().rpartition("\n")[2]
    return last if code == 0 and _VERSION.fullmatch(last) else ""


def _tagged(image: str) -> str:
    found = re.search(_TAG % re.escape(adapters.get().name), image)
    return found[1] if found else ""
