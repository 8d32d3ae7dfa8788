# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's packages: which ones, which version, and what that version makes of GPUs. Private to the collection.

Pure: what dpkg says goes in, what is wanted and what is missing comes out.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .apt_packages import Installed

DEBIAN, DOCKER = "debian", "docker"

FIRST_WITH_CDI = 25
"""The first major version that takes names of CDI. Source: moby pull request 45134."""

FIRST_WITH_CDI_ON = 29
"""The first major version whose releases all have CDI on by themselves. Source: moby pull request 49963."""

CDI = {"features": {"cdi": True}}
RUNTIME = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
"""For an engine without CDI: NVIDIA's runtime changes what a container gets before runc makes the container."""


@dataclass(frozen=True)
class Packages:
    """The packages that make an engine.

    `pinned` follow the version that is wanted. The others are held at the version that came along: a new containerd or
    runc restarts or breaks containers just as well.
    """

    pinned: tuple[str, ...]
    others: tuple[str, ...]
    version: str = ""
    """What was tested. Debian's archive holds one version at a time, so that the revision stays open."""


_DOCKERS_OWN = Packages(("docker-ce", "docker-ce-cli"), ("containerd.io",))

PACKAGES: Mapping[str, Mapping[str, Packages]] = {
    "12": {DEBIAN: Packages(("docker.io",), ("containerd", "runc"), "20.10.24*"), DOCKER: _DOCKERS_OWN},
    "13": {DEBIAN: Packages(("docker.io", "docker-cli"), ("containerd", "runc"), "26.1.5*"), DOCKER: _DOCKERS_OWN},
}
"""By Debian's major version and by source."""

FOREIGN: Mapping[str, tuple[str, ...]] = {
    DEBIAN: ("docker-ce", "containerd.io"),
    DOCKER: ("docker.io", "containerd"),
}
"""By source, the packages of the other source, which cannot be installed beside its own."""

WHEN_DRAINED = "When the node may be disturbed (drained), run this play with -e docker_restart_allowed=true."


def names(source: str, release: str) -> list[str]:
    """All packages that dpkg is asked for."""
    packages = PACKAGES[release][source]
    return [*packages.pinned, *packages.others, *FOREIGN[source]]


@dataclass(frozen=True)
class Engine:
    """What a node has of an engine, beside what is wanted."""

    source: str
    packages: Packages
    installed: Mapping[str, Installed]
    """Of `names`, what is installed."""
    wish: str = ""
    """The version that the operator wants; empty for the tested one."""
    may_move: bool = True
    """Whether the packages may restart the daemon and containerd, which they do when they are unpacked."""

    @property
    def wanted(self) -> str:
        """The version that is wanted, with * as a wildcard. Docker's own packages have the epoch 5, which the operator
        leaves out."""
        version = self.wish or self.packages.version
        return f"5:{version}" if self.source == DOCKER and ":" not in version else version

    @property
    def present(self) -> bool:
        """Whether all packages are there."""
        return all(self._whole(name) for name in (*self.packages.pinned, *self.packages.others))

    def _whole(self, name: str) -> bool:
        return name in self.installed and self.installed[name].whole

    @property
    def moving(self) -> list[str]:
        """The packages that are there in another version than the wanted one."""
        return [
            name
            for name in self.packages.pinned
            if self._whole(name) and not fnmatch.fnmatchcase(self.installed[name].version, self.wanted)
        ]

    @property
    def foreign(self) -> list[str]:
        """The packages of the other source that are there."""
        return [name for name in FOREIGN[self.source] if self._whole(name)]

    @property
    def postponed(self) -> bool:
        """Whether another version is wanted, and has to wait."""
        return bool(self.moving) and not self.may_move

    @property
    def version(self) -> str:
        """The version that is there once the role has run."""
        return self.installed[self.moving[0]].version if self.postponed else self.wanted

    @property
    def major(self) -> int:
        """The major version. A version that is wanted names its major number in full."""
        match = re.match(r"(?:\d+:)?(\d+)", self.version)
        return int(match[1]) if match else 0

    @property
    def gpu_request(self) -> str:
        """How containers ask for GPUs: `cdi` of the engine itself, `runtime` of NVIDIA's runtime."""
        return "cdi" if self.major >= FIRST_WITH_CDI else "runtime"

    @property
    def install(self) -> list[str]:
        """The packages as apt-get reads them."""
        return [*(f"{name}={self.wanted}" for name in self.packages.pinned), *self.packages.others]

    @property
    def pins(self) -> dict[str, Any]:
        """The packages' pin, as apt_packages takes it."""
        pinned = list(self.packages.pinned)
        return {
            "name": "docker",
            "packages": [*pinned, *self.packages.others],
            "pinned": pinned,
            "version": self.wanted,
            "versions": {},
        }

    def keys(self, cdi: bool, gpus: bool) -> dict[str, Any]:
        """The keys of daemon.json by which containers get GPUs."""
        if self.gpu_request == "cdi":
            return CDI if cdi else {}
        return RUNTIME if gpus else {}

    @property
    def restart_reason(self) -> str:
        """Why a change of version waits for a restart; empty when nothing waits."""
        if not self.postponed:
            return ""
        return f"{', '.join(self.moving)} {self.version} is installed, {self.wanted} is wanted"

    def cdi_problem(self, gpus: bool, config: Mapping[str, Any], not_loaded: Sequence[str]) -> str:
        """Why containers cannot ask for GPUs by CDI name once the role has run; empty when they can.

        `config` is the whole of daemon.json, `not_loaded` the keys for which a restart is due that was not made.
        """
        if self.gpu_request != "cdi":
            return "" if gpus else self._too_old()
        if not (config.get("features") or {}).get("cdi", self.major >= FIRST_WITH_CDI_ON):
            return (
                "CDI is off in Docker's daemon.json. Set docker_cdi to true, and take features.cdi out of "
                "docker_daemon_config."
            )
        if "features" in not_loaded:
            return f"Docker has not loaded features.cdi yet, because containers run. {WHEN_DRAINED}"
        return ""

    def _too_old(self) -> str:
        way = WHEN_DRAINED
        if not self.postponed:
            way = (
                'Install Debian 13, or set docker_source to "docker" and docker_version to such a version, or '
                'docker_nvidia to "always", for NVIDIA\'s runtime.'
            )
        return f"Docker {self.version} has no CDI; version 25 and later have it. {way}"


def goes_by_specification(text: str | None) -> bool:
    """Whether the configuration of NVIDIA's runtime has the runtime go by the specification.

    By itself the runtime makes up a specification at each start of a container.
    """
    try:
        return bool(tomllib.loads(text or "")["nvidia-container-runtime"]["mode"] == "cdi")
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
