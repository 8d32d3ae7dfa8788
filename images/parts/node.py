# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: bare Debian 12 and 13 with systemd, SSH and Python, as an installer leaves them, in a container."""

from __future__ import annotations

from pathlib import Path

from . import host
from .tools import IMAGES, content_hash, debootstrap, image_exists, mirror_of, say, tag

SOURCE = IMAGES / "node"
SUITES = ("bookworm", "trixie")
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "python3", "python3-apt", "sudo", "iproute2", "ca-certificates", "procps"),
    *("openssh-server", "curl"),
)
HOOKS = (
    # A login's audit ID cannot be set inside a container. Without this change, every SSH login fails.
    "sed -i '/pam_loginuid/s/required/optional/' $1/etc/pam.d/sshd",
    # A container cannot load modules. Without this link, systemd of Debian 13 is degraded after the boot.
    "ln -s /dev/null $1/etc/systemd/system/systemd-modules-load.service",
    "rm -f $1/etc/ssh/ssh_host_*",
    "chroot $1 systemctl enable ssh.service ssh-keys.service",
    # A container needs no consoles, and has the clock of its host.
    "chroot $1 systemctl mask getty.target console-getty.service systemd-timesyncd.service",
)


def build() -> str:
    """Build the images inference-node:bookworm and :trixie."""
    # The certificate of a mirror, or of the site's image registry, may need an authority that this machine has added.
    authorities = host.certificates()
    hooks = [f"copy-in {path} /usr/local/share/ca-certificates/" for path in authorities]
    hooks += ["chroot $1 update-ca-certificates", f"copy-in {SOURCE}/ssh-keys.service /etc/systemd/system/", *HOOKS]
    for suite in SUITES:
        mirror = [*mirror_of(suite), *host.apt_options()]
        inputs: list[Path | str] = [suite, SOURCE, *PACKAGES, *HOOKS, *mirror, *authorities]
        name = f"inference-node:{suite}-{content_hash(*inputs)}"
        if not image_exists(name):
            say(f"bootstrapping Debian {suite} (half a minute)")
            debootstrap(suite, PACKAGES, name, *hooks)
        tag(name, f"inference-node:{suite}")
    return "inference-node:bookworm, inference-node:trixie"
