# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One engine as the site declares it. Private to the collection.

This file imports nothing of the collection: each command of an engine's unit imports this file, by release.py, and
needs no model registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instance:
    """One engine as the site declares it. An empty value of a container's setting means the setting of all engines."""

    name: str
    model: str
    port: int
    gpus: tuple[str, ...] = ()
    accelerator: str = "nvidia"
    state: str = "present"
    bridge_port: int | None = None
    """The port of a bridge, which serves while an update swaps this instance; None where no bridge may run."""
    nodes: tuple[str, ...] = ()
    """The nodes of a gang, by rank; empty for an instance on one node. `gpus` are then those of this node."""
    gang_port: int | None = None
    rendezvous_port: int | None = None
    executor: str = ""
    """The program that places the engine's processes on the nodes; empty for the engine itself."""
    executor_dashboard: bool = False
    """Whether this program shows its dashboard, on the leader's localhost."""
    image: str = ""
    """The image of this engine alone, by digest."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables of this engine. Its secrets are not here: modules get them by an option of their own."""
    shm_size: str = ""
    memory: str = ""
    ulimits: Mapping[str, str] = field(default_factory=dict)
    """Limits of this engine, in addition to those of all engines."""
    user: str = ""
    """The user of this engine: a name on the node, UID or UID:GID."""
