# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version of vLLM an image holds. Private to the collection.

No label tells it: vLLM's images inherit org.opencontainers.image.version from Ubuntu's, which has Ubuntu's own there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core import files
from .container import python_argv

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command: exit code, output, errors."""

_QUESTION = "from importlib.metadata import version; print(version('vllm'))"

# Only where the repository is vLLM's by its name: elsewhere a tag may count something else.
_TAG = re.compile(r"(?:^|/)[^/:@]*vllm[^/:@]*:v?(\d+\.\d+\.\d+(?:rc\d+|\.post\d+|\.dev\d+)?)(?![\d.])[^/@]*(?:@|$)")
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")


def find(given: str, image: str, registry: Path, docker: str | None, run: Run) -> str:
    """The version of vLLM in an image, as 0.32.0+cpu; empty where nothing tells it.

    In this order: `given` by the operator; what `registry`, the node's registry.json, keeps of this very image's own
    word; that word, where the node has the image (a second); its tag, which stands before the digest.
    """
    return given or _kept(registry, image) or (docker and _asked(docker, image, run)) or _tagged(image)


def kept_as(image: str, version: str, given: str) -> dict[str, Any]:
    """What registry.json keeps of it: the version in use, and whether it is only what the operator said."""
    return {"image": image, "version": version, "given": bool(given)}


def _kept(registry: Path, image: str) -> str:
    state = None
    # A damaged file tells nothing; engine_release writes it anew.
    with contextlib.suppress(OSError, ValueError):
        state = files.read_json(registry)
    engine = state.get("engine") if isinstance(state, dict) else None
    if not isinstance(engine, dict) or engine.get("image") != image or engine.get("given") is not False:
        return ""
    return str(engine.get("version") or "")


def _asked(docker: str, image: str, run: Run) -> str:
    code, output, _errors = run(python_argv(docker, image, _QUESTION))
    last = output.strip().rpartition("\n")[2]
    return last if code == 0 and _VERSION.fullmatch(last) else ""


def _tagged(image: str) -> str:
    found = _TAG.search(image)
    return found[1] if found else ""
