# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an engine's metrics once. Private to the collection."""

from __future__ import annotations

import asyncio
import http.client

from ...core.paths import Paths
from .. import environment
from ..release import Release
from .http import ask
from .probe import target

SECONDS = 10.0
"""For the answer. Under 100 parallel requests, the metrics took up to 2.3 s (vLLM 0.32 on a CPU)."""


def scrape(paths: Paths, name: str, release: Release) -> str:
    """The metrics of the engine that runs a release, as text; empty where the engine does not answer.

    Raises OSError: ConnectionRefusedError where no process listens.
    """
    engine = target(release, environment.read(paths, name))
    try:
        answer = asyncio.run(ask(engine, "GET", release.adapter.metrics.path, None, SECONDS))
    except ConnectionRefusedError:
        raise
    except (OSError, http.client.HTTPException):
        return ""
    return answer.body.decode(errors="replace")
