# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The function of each step of a swap. Private to the collection.

Every step may run twice: a swap that was cut off runs the recorded step again. A function returns the values of the
swap that change. A step that fails raises StepFailed, or an exception of the code that the step calls. Then
machine.py decides what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...engine.state import swaps
from ...engine.state.swaps import Swap
from . import begin, bridge, leave, members, serve
from .node import Node

STEPS: Mapping[str, Callable[[Node, Swap], dict[str, Any]]] = {
    swaps.BEGUN: begin.begun,
    swaps.STAGED: members.staged,
    swaps.BRIDGE: bridge.bridge,
    swaps.DRAIN: leave.drain,
    swaps.GATE: leave.gate,
    swaps.STOP: leave.stop,
    swaps.START: serve.start,
    swaps.PROBE: serve.probe,
    swaps.ADMIT: serve.admit,
    swaps.WATCH: serve.watch,
    swaps.MEMBERS: members.prove,
    swaps.PROVE: serve.prove,
    swaps.RELEASE: leave.release,
    swaps.UNBRIDGE: bridge.unbridge,
}
