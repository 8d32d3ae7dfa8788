# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the source of a model: a directory on the controller or on the node, or a remote source. Private to
the collection. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.controller import ON_CONTROLLER
from ...core.problems import Problem
from ...models.manifest import NAME
from .remote import Remote
from .remote import parse as parse_remote

CONTROLLER = "controller"
NODE = "node"
REMOTE = "remote"


@dataclass(frozen=True)
class Source:
    """The source of a model: a directory on the controller or on the node, or a remote source."""

    origin: str
    path: Path
    remote: Remote | None = None

    def __str__(self) -> str:
        return self.remote.location if self.remote else str(self.path)


def parse_source(entry: Mapping[str, Any]) -> Source:
    """Read `model`, `revision` and `checksum` of a model's entry. Raises ValueError that says what is allowed."""
    remote = parse_remote(entry)
    if remote:
        return Source(REMOTE, Path(), remote)
    given = entry.get("model")
    text = given if isinstance(given, str) else ""
    origin, path = (CONTROLLER, text.removeprefix(ON_CONTROLLER)) if text.startswith(ON_CONTROLLER) else (NODE, text)
    if not path.startswith("/"):
        raise ValueError(
            "must be controller:/absolute/path for a directory on the controller, /absolute/path for one on the node, "
            "https://…tar for an archive, or a hub's ORGANISATION/NAME"
        )
    return Source(origin, Path(os.path.normpath(path)))


def load_sources(models: Mapping[str, Any]) -> tuple[dict[str, Source], list[Problem]]:
    """The sources of registry entries, and a problem for every entry without a valid source."""
    sources: dict[str, Source] = {}
    problems: list[Problem] = []
    for name, entry in models.items():
        if not NAME.match(name):
            message = "cannot name a directory: use letters, digits, dot, dash and underscore"
            problems.append(Problem(f"models.{name}", message))
            continue
        try:
            sources[name] = parse_source(entry if isinstance(entry, Mapping) else {})
        except ValueError as error:
            given = entry.get("model") if isinstance(entry, Mapping) else None
            problems.append(Problem(f"models.{name}", str(error), "model", given))
    return sources, problems
