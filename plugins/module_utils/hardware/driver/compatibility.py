# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads compatibility.json: which driver fits which GPU. docs/hardware.md shows the table. Private to the collection.

Runs on the controller: nodes do not get the data file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("compatibility.json")

IMPOSSIBLE, SUPPORTED, REQUIRED = "impossible", "supported", "required"
"""Whether an architecture can use, or needs, the open kernel module."""


@dataclass(frozen=True)
class Architecture:
    """An architecture of GPUs, by its name in nvidia-smi."""

    name: str
    compute_capabilities: tuple[str, ...]
    open_module: str
    """IMPOSSIBLE, SUPPORTED or REQUIRED."""
    first_branch: int | None
    """None if every branch of the table is new enough."""
    last_branch: int | None
    """None while the newest branch supports the architecture."""
    source: str


@dataclass(frozen=True)
class Branch:
    """A branch of NVIDIA's driver: the first number of its versions."""

    branch: int
    kind: str
    end_of_life: str | None
    """The month in which NVIDIA's updates end, as 2028-06; None where unknown."""
    cuda: str
    """CUDA version of the driver. It runs programs of every CUDA toolkit up to this major version."""
    source: str


@dataclass(frozen=True)
class DebianDriver:
    """A driver in the archive of a release of Debian."""

    release: int
    codename: str
    branch: int
    version: str
    """Version when the source was read; point releases raise it within the branch."""
    series: str
    """Part of the names of the packages, as tesla-535; empty for packages with plain names."""
    flavors: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Rules:
    """The first branch for which each rule applies."""

    open_by_default_from: int
    open_only_from: int
    compute_packages_from: int
    fabric_manager_without_suffix_from: int


@dataclass(frozen=True)
class Compatibility:
    """The content of the file."""

    architectures: Mapping[str, Architecture]
    branches: Mapping[int, Branch]
    debian: tuple[DebianDriver, ...]
    rules: Rules
    toolkit_minimum: str
    """First version of the container toolkit that itself keeps the CDI specification up to date."""
    docker_with_cdi: str
    """First version of Docker that supports CDI."""

    def debian_drivers(self, release: int) -> list[DebianDriver]:
        """The drivers of a release of Debian, the main driver first; empty for an unknown release."""
        return [driver for driver in self.debian if driver.release == release]


def load(path: Path = DATA) -> Compatibility:
    """Read the data file. Raises OSError, and KeyError, TypeError or ValueError for wrong content."""
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
