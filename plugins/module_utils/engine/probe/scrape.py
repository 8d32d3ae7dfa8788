# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at an engine's /metrics. Private to the collection."""

from __future__ import annotations

import asyncio
import http.client

from ...core.paths import Paths
from .. import environment
from ..release import Release
from . import metrics
from .http import ask
from .probe import Target

SECONDS = 10.0
"""Under 100 parallel requests it took up to 2.3 (vLLM 0.32 on a CPU)."""


def scrape(paths: Paths, name: str, release: Release) -> str:
    """What the engine that runs the release answers; empty where it does not.

    Raises ConnectionRefusedError where no process listens.
    """
    key = environment.read(paths, name).get(environment.API_KEY, "")
    target = Target(release.address, release.port, release.served_names, key)
    try:
        answer = asyncio.run(ask(target, "GET", metrics.PATH, None, SECONDS))
    except ConnectionRefusedError:
        raise
    except (OSError, http.client.HTTPException):
        return ""
    return answer.body.decode(errors="replace")
