# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of nodes after site.yml, without an instance.

Scenarios with `NODES_FROM: snapshot` start from such a snapshot, and site.yml then updates the node. So a snapshot may
be of another commit: its key depends on the images, FORGET and LATER_PACKAGES alone. A snapshot is made anew after a
week, because packages and the collection change.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from nodes import CACHE, RELEASES, ROOT, NodeError, Origin, Site, alone, copy_volume, disk_of, existing, remove, run

LABEL = "inference.snapshot"
"""The label with the Debian release, on images and volumes of snapshots."""
MAX_AGE_DAYS = 7
STOP_SECONDS = 60
PREFIX = "snapshot-"
LATER_PACKAGES = ("haproxy", "socat", "restic", "openssh-client")
"""Packages that scenarios install: the snapshot has their files in APT's cache."""

# The removal of the instance also removes the engine's image and its compile cache. A second name keeps the image's
# layers, so that the next pull is fast. The compile cache saves a quarter of the time of an engine's start.
BEFORE = """
docker tag "$(docker inspect --format '{{.Image}}' vllm-main)" kept
cp --archive /mnt/nvme/workspace/vllm_cache/main /root/
"""
AFTER = """
docker image rm kept
mkdir --parents /mnt/nvme/workspace/vllm_cache
rm -rf /mnt/nvme/workspace/vllm_cache/main
mv /root/main /mnt/nvme/workspace/vllm_cache/
"""

# A copy is another machine: remove its identity, which the boot makes anew.
FORGET = """
systemctl stop docker.socket docker.service containerd.service
rm -rf /etc/ssh/ssh_host_* /root/.ssh /etc/docker/key.json /var/lib/docker/network /var/lib/docker/engine-id
rm -rf /var/log/journal/* /var/lib/systemd/timers/* /var/lib/systemd/random-seed
truncate --size=0 /etc/machine-id
"""


def key(release: str) -> str:
    """The key of a snapshot: a hash of its images, of FORGET and of LATER_PACKAGES."""
    image = run("docker", "image", "inspect", "--format", "{{.Id}}", f"inference-node:{release}").stdout.strip()
    return hashlib.sha256("\n".join([image, engine_image(), FORGET, *LATER_PACKAGES]).encode()).hexdigest()[:12]


def engine_image() -> str:
    """The image reference with which nodes pull the engine."""
    return str(json.loads((CACHE / "engine-image.json").read_text())["reference"])


def origin(release: str) -> Origin:
    """The snapshot of a Debian release, which may not exist."""
    name = f"{release}-{key(release)}"
    return Origin(f"inference-node:snapshot-{name}", f"inference-snapshot-{name}")


def is_fresh(snapshot: Origin, now: datetime) -> bool:
    """Whether a snapshot is complete, and not older than a week."""
    disk = run("docker", "volume", "inspect", "--format", "{{.Name}}", snapshot.volume, check=False).stdout.strip()
    created = run("docker", "image", "inspect", "--format", "{{.Created}}", snapshot.image, check=False).stdout.strip()
    # Without nanoseconds, which Python does not parse.
    return bool(disk and created) and (now - datetime.fromisoformat(f"{created[:19]}+00:00")).days < MAX_AGE_DAYS


def ensure(releases: Sequence[str] = RELEASES) -> dict[str, Origin]:
    """The snapshots of Debian releases. Makes missing and old snapshots. Raises NodeError."""
    with alone("snapshot"):
        wanted = {release: origin(release) for release in releases}
        if missing := {name: one for name, one in wanted.items() if not is_fresh(one, datetime.now(UTC))}:
            make(missing)
    return wanted


def make(wanted: dict[str, Origin]) -> None:
    """Converge a bare node of each Debian release, and make its snapshot without the instance. Raises NodeError."""
    forget(wanted)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        site = Site(Path(scratch), PREFIX)
        try:
            for release in wanted:
                for left in existing(f"{PREFIX}{release}$"):
                    remove(left)
                site.create(release, Origin(f"inference-node:{release}"))
            for release in wanted:
                site.wait(release)
            converge(site, Path(scratch) / "inventory")
            for release, snapshot in wanted.items():
                keep(PREFIX + release, snapshot)
        finally:
            for release in site.addresses:
                remove(PREFIX + release)


def forget(releases: Iterable[str]) -> None:
    """Remove the snapshots of Debian releases, except snapshots in use."""
    for release in releases:
        filters = ("--filter", f"label={LABEL}={release}")
        images = run("docker", "image", "ls", "--quiet", *filters).stdout.split()
        volumes = run("docker", "volume", "ls", "--quiet", *filters).stdout.split()
        for kind, names in (("image", images), ("volume", volumes)):
            for name in names:
                run("docker", kind, "rm", name, check=False)


def converge(site: Site, inventory: Path) -> None:
    """Make the nodes serve, then remove the instance, because each scenario has its own. Raises NodeError."""
    inventory.mkdir()
    site.write_inventory(inventory / "hosts.yml")
    (inventory / "group_vars").symlink_to(ROOT / "inventories/demo/group_vars")
    playbook(inventory, "site")
    for name in site.addresses:
        site.shell(name, BEFORE)
    playbook(inventory, "decommission", "--extra-vars", "instance=main allow_downtime=true")
    for name in site.addresses:
        site.shell(name, f"docker pull --quiet {engine_image()}\n{AFTER}")


def playbook(inventory: Path, name: str, *options: str) -> None:
    """Run a playbook of the collection. Raises NodeError with the end of its output."""
    command = ["ansible-playbook", "--inventory", str(inventory), *options, f"baremetal.inference.{name}"]
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache"),
    }
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        raise NodeError(f"The snapshot's nodes: {name}.yml failed:\n{result.stdout[-3000:]}\n{result.stderr[-1000:]}")


def keep(container: str, snapshot: Origin) -> None:
    """Stop a node, and make a snapshot of its disks. Raises NodeError."""
    release = container.removeprefix(PREFIX)
    later = f"apt-get install --quiet --yes --download-only --no-install-recommends {' '.join(LATER_PACKAGES)}"
    run("docker", "exec", container, "sh", "-ec", later + FORGET)
    # This signal orders systemd in a container to power off.
    run("docker", "kill", "--signal", "SIGRTMIN+3", container)
    deadline = time.monotonic() + STOP_SECONDS
    while run("docker", "inspect", "--format", "{{.State.Running}}", container).stdout.strip() == "true":
        if time.monotonic() > deadline:
            raise NodeError(
                f"{container} does not stop within {STOP_SECONDS} s. Look: docker exec -it {container} bash"
            )
        time.sleep(0.2)
    run("docker", "volume", "create", "--label", f"{LABEL}={release}", snapshot.volume)
    copy_volume(disk_of(container), snapshot.volume)
    # The image comes last: if it exists, the volume is complete.
    run("docker", "commit", "--change", f"LABEL {LABEL}={release}", container, snapshot.image)
