# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things lie on a node. Private to the collection.

Every path is defined here once; tests pass another root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """The node's layout below ``root`` (``/`` on a node, a temporary directory in tests)."""

    root: Path = Path("/")

    @property
    def etc(self) -> Path:
        """Desired state."""
        return self.root / "etc/inference"

    @property
    def state(self) -> Path:
        """What the node remembers: releases, drain intents, probe results."""
        return self.root / "var/lib/inference"

    @property
    def registry(self) -> Path:
        return self.etc / "registry.json"

    @property
    def instances(self) -> Path:
        return self.etc / "instances"

    def instance(self, name: str) -> Path:
        return self.instances / f"{name}.json"

    def env(self, name: str) -> Path:
        """The environment of the release whose unit is installed; mode 0600."""
        return self.etc / "env" / f"{name}.env"

    @property
    def all_releases(self) -> Path:
        return self.state / "releases"

    def releases(self, name: str) -> Path:
        return self.all_releases / name

    def release(self, name: str, number: int) -> Path:
        return self.releases(name) / str(number)

    def active(self, name: str) -> Path:
        """The link to the release whose unit is installed."""
        return self.releases(name) / "active"

    def current(self, name: str) -> Path:
        """The link to the release that last proved itself."""
        return self.releases(name) / "current"

    def known_good(self, name: str) -> Path:
        """Checksums of the files that the instance last proved itself with."""
        return self.state / "known-good" / f"{name}.json"

    def starts(self, name: str) -> Path:
        """How often the instance has tried to start in a row; there is no file once it has been ready."""
        return self.state / "starts" / f"{name}.json"

    @property
    def command(self) -> Path:
        """The node tool; every unit calls it by this path."""
        return self.root / "usr/local/bin/inferctl"

    @property
    def library(self) -> Path:
        """The package that the node tool runs."""
        return self.root / "usr/local/lib/inference"

    @property
    def units(self) -> Path:
        return self.root / "etc/systemd/system"

    def unit(self, name: str) -> Path:
        return self.units / unit_name(name)

    @property
    def target(self) -> Path:
        return self.units / "inference.target"


def unit_name(instance: str) -> str:
    """The systemd unit of an instance; also the journal tag without its suffix."""
    return f"vllm@{instance}.service"


def journal_tag(instance: str) -> str:
    """The tag under which the engine logs: ``journalctl -t vllm@NAME``."""
    return f"vllm@{instance}"


def container_name(instance: str) -> str:
    """The Docker container of an instance."""
    return f"vllm-{instance}"
