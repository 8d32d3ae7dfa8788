# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with backups."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import dataclass
from typing import Any

from node import Node, playbook

SAVED = "/etc/inference /var/lib/inference/releases /var/lib/inference/known-good /etc/systemd/system/vllm@main.service"


@dataclass(frozen=True)
class Saved:
    """A node with backups."""

    node: Node

    def backup(self) -> dict[str, Any]:
        """Make a backup as the timer does. Returns the node's report."""
        self.node.run("systemctl start inference-backup.service")
        return self.jobs()["backup"]

    def jobs(self) -> dict[str, Any]:
        return dict(json.loads(self.node.run("inference-backup status --json", check=False))["jobs"])

    def snapshots(self) -> list[dict[str, Any]]:
        text = self.node.run("inference-backup restic snapshots --json --tag inference-node --host $(hostname)")
        return list(json.loads(text) or [])

    def restore(self, *options: str, check: bool = True, **extra: Any) -> str:
        """Run restore.yml on this node. Returns its output."""
        name = "baremetal.inference.restore"
        return playbook(self.node.name, *options, check=check, name=name, **extra)

    def files(self) -> str:
        """Kind, mode, owner, group, link and content of the files at SAVED, a part of what a restore brings back."""
        return self.listing() + "\n" + self.node.run(f"find {SAVED} -type f | sort | xargs sha256sum")

    def listing(self) -> str:
        """Kind, mode, owner, group and link of the same files."""
        return self.node.run(f"find {SAVED} -printf '%p %y %m %u %g %l\\n' | sort")

    def contents(self) -> dict[str, str]:
        """The texts of the same files by path."""
        packed = base64.b64decode(self.node.run(f"tar --create --absolute-names {SAVED} | base64 --wrap=0"))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            found = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
            return {name: stream.read().decode() for name, stream in found.items() if stream is not None}
