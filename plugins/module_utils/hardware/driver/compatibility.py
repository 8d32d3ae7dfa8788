# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver fits which GPU, as compatibility.json has it and docs/hardware.md shows it. Private to the collection.

Runs on the controller: the data file is not shipped to nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("compatibility.json")

IMPOSSIBLE, SUPPORTED, REQUIRED = "impossible", "supported", "required"
"""What an architecture makes of the open kernel module."""


@dataclass(frozen=True)
class Architecture:
    """A generation of GPUs, by the name that nvidia-smi has for it."""

    name: str
    compute_capabilities: tuple[str, ...]
    open_module: str
    """IMPOSSIBLE, SUPPORTED or REQUIRED."""
    first_branch: int | None
    """None where every branch of the table is new enough."""
    last_branch: int | None
    """None while the newest branch supports it."""
    source: str


@dataclass(frozen=True)
class Branch:
    """A branch of NVIDIA's driver: the first number of its versions."""

    branch: int
    kind: str
    end_of_life: str | None
    """The month in which NVIDIA's updates end, as 2028-06; None where unknown."""
    cuda: str
    """The CUDA version of the driver, which runs what any toolkit of this major version, or an older one, built."""
    source: str


@dataclass(frozen=True)
class DebianDriver:
    """A driver that a release of Debian has itself."""

    release: int
    codename: str
    branch: int
    version: str
    """As of the source; point releases raise it within the branch."""
    series: str
    """Part of the names of the packages, as tesla-535; empty for the packages that have the plain names."""
    flavors: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Rules:
    """Branches from which on something else holds."""

    open_by_default_from: int
    open_only_from: int
    compute_packages_from: int
    fabric_manager_without_suffix_from: int


@dataclass(frozen=True)
class Compatibility:
    """The whole file."""

    architectures: Mapping[str, Architecture]
    branches: Mapping[int, Branch]
    debian: tuple[DebianDriver, ...]
    rules: Rules
    toolkit_minimum: str
    """The first container toolkit that keeps the CDI specification up to date by itself."""
    docker_with_cdi: str
    """The first Docker engine that knows CDI."""

    def debian_drivers(self, release: int) -> list[DebianDriver]:
        """What a release of Debian has, its main driver first; nothing for a release that is not known."""
        return [driver for driver in self.debian if driver.release == release]


def load(path: Path = DATA) -> Compatibility:
    """Read the data file. Raises OSError, and KeyError, TypeError or ValueError where it is not what it should be."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Compatibility(
        architectures={
            entry["name"]: Architecture(**{**entry, "compute_capabilities": tuple(entry["compute_capabilities"])})
            for entry in data["architectures"]
        },
        branches={entry["branch"]: Branch(**entry) for entry in data["branches"]},
        debian=tuple(DebianDriver(**{**entry, "flavors": tuple(entry["flavors"])}) for entry in data["debian"]),
        rules=Rules(**{name: rule["branch"] for name, rule in data["rules"].items()}),
        toolkit_minimum=data["container_toolkit"]["minimum"]["version"],
        docker_with_cdi=data["container_toolkit"]["docker_with_cdi"]["version"],
    )
