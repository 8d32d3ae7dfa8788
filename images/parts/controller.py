# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers with newer versions of ansible-core, on Debian 13: this machine's Python may be too old for them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .tools import CACHE, IMAGES, content_hash, debootstrap, docker_build, download_wheels, image_exists, say, tag

SOURCE = IMAGES / "controller"
NAME = "inference-controller:current"
PACKAGES = (
    *("python3", "python3-venv", "openssh-client", "rsync", "git", "make", "docker-cli", "ca-certificates", "curl"),
    # Not started: tests run systemd-analyze on schedules and units, and HAProxy's check on configurations.
    *("systemd", "haproxy"),
)
CORES = {path.stem.removeprefix("core-"): path for path in sorted(SOURCE.glob("core-*.txt"))}
"""Requirements by tested version of ansible-core. To add a version, add its file."""


def build() -> str:
    """Build the image: one virtual environment for each newer ansible-core, in /opt/core-VERSION."""
    name = f"inference-controller:{content_hash(SOURCE, *PACKAGES)}"
    if not image_exists(name):
        base = f"inference-controller:base-{content_hash(*PACKAGES)}"
        if not image_exists(base):
            say("bootstrapping the controller's Debian")
            debootstrap("trixie", PACKAGES, base)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            for core, requirements in CORES.items():
                say(f"fetching ansible-core {core} and its test tools")
                download_wheels(requirements, "3.13", Path(scratch) / "wheels")
            for path in SOURCE.iterdir():
                shutil.copy(path, scratch)
            say("building the image")
            docker_build(Path(scratch), name, BASE=base)
    tag(name, NAME)
    return f"{NAME}: ansible-core {', '.join(CORES)}"
