# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a backup takes, and how long until a node that burnt down serves again on a blank machine: against a fresh
one by site.yml in the same run.

The repository is on an S3 server on this machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nodes import ROOT, NodeError, Question, Site, remove

sys.path.insert(0, str(ROOT / "molecule/shared"))

import s3_server

BUCKET = "bench"
SAID = re.compile(r"snapshot \w+, (\d+) files, ([\d.]+ \w+)")

Play = Callable[..., str]
Add = Callable[[str, float, float | None], None]


def bench(site: Site, node: str, hosts: Path, play: Play, add: Add, fresh: float) -> None:
    """Measure, and `add` rows: what, seconds, ratio. `fresh` is what site.yml took for a blank machine, in seconds."""
    with s3_server.serve(site.own_address, BUCKET) as address:
        settings = {
            "backup_repository": f"s3:{address}/{BUCKET}",
            "backup_password": "bench-password-not-secret",
            "backup_environment": {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-not-secret"},
        }
        said = SAID.search(" ".join(play("playbooks/backup.yml", run_backup=True, **settings).split()))
        if not said:
            raise NodeError("backup.yml did not say what it saved")
        command = ["ssh", *site.ssh_options(), f"root@{site.addresses[node]}"]
        began = time.monotonic()
        subprocess.run([*command, "systemctl start inference-backup.service"], check=True)
        add(f"a backup: {said[1]} files, {said[2]}, to S3", time.monotonic() - began, None)
        remove(node)
        site.start(node, "bookworm")
        site.write_inventory(hosts)
        began = time.monotonic()
        play("playbooks/restore.yml", snapshot="latest", **settings)
        seconds = time.monotonic() - began
        add("a lost node, restore.yml until it serves", seconds, seconds / fresh)
        Question(site.addresses[node], "Who are you?").ask()
