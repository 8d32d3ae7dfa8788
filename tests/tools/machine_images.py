# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of nodes that have what a bare machine has, and a container lacks: a kernel, and all of Debian's components.

They also have a compiler and Docker. The installation of all this takes minutes, so nodes of the scenarios `hardware`,
`driver` and `firstday` start from such an image. An image is made anew after a week, because packages change, and after
a change of the node's image or of the script.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nodes import NETWORK, RELEASES, ROOT, Origin, alone, run

SCRIPT = ROOT / "molecule/shared/machine.sh"
LABEL = "inference.machine"
"""The label with the Debian release, on these images."""
MAX_AGE = timedelta(days=7)


def name(release: str, script: Path = SCRIPT) -> str:
    """The image's name, with a hash of what the image is made of. Raises NodeError."""
    base = run("docker", "image", "inspect", "--format", "{{.Id}}", f"inference-node:{release}").stdout.strip()
    return f"inference-node:machine-{release}-{hashlib.sha256((base + script.read_text()).encode()).hexdigest()[:12]}"


def is_fresh(image: str, now: datetime) -> bool:
    """Whether an image exists, and is not older than a week."""
    created = run("docker", "image", "inspect", "--format", "{{.Created}}", image, check=False).stdout.strip()
    # Without nanoseconds, which Python does not parse.
    return bool(created) and now - datetime.fromisoformat(f"{created[:19]}+00:00") < MAX_AGE


def ensure(releases: Iterable[str] = RELEASES) -> dict[str, Origin]:
    """The images of Debian releases. Makes missing and old images. Raises NodeError."""
    wanted = {release: Origin(name(release)) for release in releases}
    with alone("machine"):
        for release, origin in wanted.items():
            if not is_fresh(origin.image, datetime.now(UTC)):
                forget(release)
                make(release, origin.image)
    return wanted


def make(release: str, image: str) -> None:
    """Run the script in a container of the node's image, and keep the container as an image. Raises NodeError."""
    container = f"machine-{release}"
    run("docker", "rm", "--force", container, check=False)
    command = ("sh", "-ec", SCRIPT.read_text())
    try:
        run("docker", "run", "--name", container, "--network", NETWORK, f"inference-node:{release}", *command)
        run("docker", "commit", "--change", f"LABEL {LABEL}={release}", container, image)
    finally:
        run("docker", "rm", "--force", "--volumes", container, check=False)


def forget(release: str) -> None:
    """Remove the images of a Debian release, except images in use."""
    for image in run("docker", "image", "ls", "--quiet", "--filter", f"label={LABEL}={release}").stdout.split():
        run("docker", "image", "rm", image, check=False)
