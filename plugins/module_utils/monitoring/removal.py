# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services and files of this collection on a monitoring host, for their removal. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core import files
from ..core.paths import Paths
from ..debian.service_files import Part
from . import places
from .places import ALERTMANAGER, DIRECTORY, DROP_IN, HEADER, OWNED, PROMETHEUS, STATE, UNITS

STOPPED_IN_ORDER = (PROMETHEUS, ALERTMANAGER)
"""Prometheus stops first. Without Alertmanager, Prometheus would report that alerts are not delivered."""


def everything() -> Sequence[Part]:
    """Both services as one part: if one of them has another configuration than ours, both stay.

    Raises OSError and ValueError.
    """
    written = files.read_written(STATE).get("files", [])
    drop_ins = [UNITS / f"{unit}.d" / DROP_IN for unit in STOPPED_IN_ORDER]
    return [
        Part(
            STOPPED_IN_ORDER,
            configs=[DIRECTORY / name for name in OWNED],
            header=HEADER,
            others=[*drop_ins, *(DIRECTORY / name for name in written if name not in OWNED), STATE],
            roots=(UNITS, DIRECTORY),
        )
    ]


def shipping() -> list[Path]:
    """The files of log shipping, and the directories with its state."""
    units = [Paths().units / name for name in (places.LOG_UNIT, *places.LOG_CHECK)]
    return [places.LOG_CONFIG, *units, *shipping_states()]


def shipping_states() -> list[Path]:
    """The directories, or links to them, with the state of log shipping."""
    return [path / places.LOG_STATE for path in places.LOG_STATES]
