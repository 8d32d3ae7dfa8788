# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses Docker's packages and their version, and how containers of that version get GPUs. Private to the collection.

Pure.
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
"""The first major version that accepts CDI device names. Source: moby pull request 45134."""

FIRST_WITH_CDI_ON = 29
"""The first major version with CDI on by default in all its releases. Source: moby pull request 49963."""

CDI = {"features": {"cdi": True}}
RUNTIME = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
"""For a Docker without CDI: NVIDIA's runtime adds the GPUs to the container before runc creates the container."""


@dataclass(frozen=True)
class Packages:
    """The packages of a Docker installation.

    The packages in `pinned` get the wanted version. Those in `others` are held at the version that was installed with
    them, because a new containerd or runc can also restart or break containers.
    """

    pinned: tuple[str, ...]
    others: tuple[str, ...]
    version: str = ""
    """The tested version; empty for Docker's own packages. The revision is a wildcard: the archive has only one."""


_DOCKERS_OWN = Packages(("docker-ce", "docker-ce-cli"), ("containerd.io",))

PACKAGES: Mapping[str, Mapping[str, Packages]] = {
    "12": {DEBIAN: Packages(("docker.io",), ("containerd", "runc"), "20.10.24*"), DOCKER: _DOCKERS_OWN},
    "13": {DEBIAN: Packages(("docker.io", "docker-cli"), ("containerd", "runc"), "26.1.5*"), DOCKER: _DOCKERS_OWN},
}
"""The packages, by Debian's major version and by source."""

FOREIGN: Mapping[str, tuple[str, ...]] = {
    DEBIAN: ("docker-ce", "containerd.io"),
    DOCKER: ("docker.io", "containerd"),
}
"""The packages that conflict with those of a source, by source."""

WHEN_DRAINED = "When the node may be disturbed (drained), run this play with -e docker_restart_allowed=true."


def names(source: str, release: str) -> list[str]:
    """All packages whose state is read from dpkg."""
    packages = PACKAGES[release][source]
    return [*packages.pinned, *packages.others, *FOREIGN[source]]


@dataclass(frozen=True)
class Engine:
    """Docker as installed on a node, and as wanted."""

    source: str
    packages: Packages
    installed: Mapping[str, Installed]
    """The packages among `names` that dpkg knows."""
    wish: str = ""
    """The version that the operator has set; empty for the tested version."""
    may_move: bool = True
    """Whether the daemon and containerd may restart. Packages restart them while dpkg installs the packages."""

    @property
    def wanted(self) -> str:
        """The wanted version, with * as a wildcard. Docker's own packages have the epoch 5, which an operator need not
        write."""
        version = self.wish or self.packages.version
        return f"5:{version}" if self.source == DOCKER and ":" not in version else version

    @property
    def present(self) -> bool:
        """Whether all packages are installed."""
        return all(self._whole(name) for name in (*self.packages.pinned, *self.packages.others))

    def _whole(self, name: str) -> bool:
        return name in self.installed and self.installed[name].whole

    @property
    def moving(self) -> list[str]:
        """The pinned packages that are installed in another version than the wanted one."""
        return [
            name
            for name in self.packages.pinned
            if self._whole(name) and not fnmatch.fnmatchcase(self.installed[name].version, self.wanted)
        ]

    @property
    def foreign(self) -> list[str]:
        """The installed packages of the other source."""
        return [name for name in FOREIGN[self.source] if self._whole(name)]

    @property
    def postponed(self) -> bool:
        """Whether a change of version has to wait for a restart that is not allowed yet."""
        return bool(self.moving) and not self.may_move

    @property
    def version(self) -> str:
        """The version that is installed after the run of the role."""
        return self.installed[self.moving[0]].version if self.postponed else self.wanted

    @property
    def major(self) -> int:
        """The major version. A wanted version has no wildcard in the major number."""
        match = re.match(r"(?:\d+:)?(\d+)", self.version)
        return int(match[1]) if match else 0

    @property
    def gpu_request(self) -> str:
        """How containers get GPUs: by `cdi`, which Docker itself reads, or by NVIDIA's `runtime`."""
        return "cdi" if self.major >= FIRST_WITH_CDI else "runtime"

    @property
    def install(self) -> list[str]:
        """The packages as arguments of apt-get: the pinned ones with the wanted version."""
        return [*(f"{name}={self.wanted}" for name in self.packages.pinned), *self.packages.others]

    @property
    def pins(self) -> dict[str, Any]:
        """The pin of the packages, as an option of the module apt_packages."""
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
        """Why containers cannot get GPUs after the run of the role; empty if they can.

        `config` is the whole of daemon.json. `not_loaded` has the keys that take effect after a restart that is due.
        """
        if self.gpu_request != "cdi":
            return "" if gpus else self._too_old()
        if not (config.get("features") or {}).get("cdi", self.major >= FIRST_WITH_CDI_ON):
            return (
                "CDI is off in Docker's daemon.json. Set docker_cdi to true, and remove features.cdi from "
                "docker_daemon_config."
            )
        if "features" in not_loaded:
            return f"Docker has not loaded features.cdi yet, because containers run. {WHEN_DRAINED}"
        return ""

    def _too_old(self) -> str:
        way = WHEN_DRAINED
        if not self.postponed:
            way = (
                'Install Debian 13, or set docker_source to "docker" and docker_version to 25 or later. Or set '
                'docker_nvidia to "always" to use NVIDIA\'s runtime.'
            )
        return f"Docker {self.version} has no CDI; version 25 and later have it. {way}"


def runtime_uses_cdi(text: str | None) -> bool:
    """Whether NVIDIA's runtime is configured to use the CDI specification on the node.

    By default, the runtime makes its own specification at each start of a container.
    """
    try:
        return bool(tomllib.loads(text or "")["nvidia-container-runtime"]["mode"] == "cdi")
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
