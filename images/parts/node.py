# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: bare Debian 12 and 13 with systemd, SSH and Python, as an installer leaves them, in a container."""

from __future__ import annotations

from .tools import content_hash, debootstrap, image_exists, say, tag

SUITES = ("bookworm", "trixie")
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "python3", "python3-apt", "sudo", "iproute2", "ca-certificates", "procps"),
    *("openssh-server", "curl"),
)
HOOKS = (
    # A login shell's id cannot be set inside a container: without this every SSH login fails.
    "sed -i '/pam_loginuid/s/required/optional/' $1/etc/pam.d/sshd",
    # No module can be loaded from inside; Debian 13 would boot as degraded.
    "ln -s /dev/null $1/etc/systemd/system/systemd-modules-load.service",
    # Each node makes host keys of its own when it boots for the first time.
    "rm -f $1/etc/ssh/ssh_host_*",
    "printf '[Unit]\\nBefore=ssh.service\\nConditionPathExists=!/etc/ssh/ssh_host_ed25519_key\\n[Service]\\nType=oneshot\\n"
    "ExecStart=/usr/bin/ssh-keygen -A\\n[Install]\\nWantedBy=ssh.service\\n' > $1/etc/systemd/system/ssh-keys.service",
    "chroot $1 systemctl enable ssh.service ssh-keys.service",
    # What nobody needs in a container: consoles, and a clock that is the host's.
    "chroot $1 systemctl mask getty.target console-getty.service systemd-timesyncd.service",
)


def build() -> str:
    """Build the images inference-node:bookworm and :trixie."""
    for suite in SUITES:
        name = f"inference-node:{suite}-{content_hash(suite, *PACKAGES, *HOOKS)}"
        if not image_exists(name):
            say(f"bootstrapping Debian {suite} (half a minute)")
            debootstrap(suite, PACKAGES, name, *HOOKS)
        tag(name, f"inference-node:{suite}")
    return "inference-node:bookworm, inference-node:trixie"
