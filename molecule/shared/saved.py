# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with backups."""

from __future__ import annotations

import json
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
        """Kind, mode, owner, link and content of all files that a restore of a node covers."""
        listed = f"find {SAVED} -printf '%p %y %m %u %g %l\\n' | sort"
        return self.node.run(f"{listed}; find {SAVED} -type f | sort | xargs sha256sum")
