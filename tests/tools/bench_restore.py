# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures a backup, and the restore of a lost node on a blank machine until it serves.

The restore is compared with site.yml on a fresh node in the same run. The repository is on an S3 server on this
machine.
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
    """Measure, and call `add` with each row: name, seconds, ratio. `fresh`: seconds of site.yml on a blank machine."""
    with s3_server.serve(site.own_address, BUCKET) as address:
        settings = {
            "backup_repository": f"s3:{address}/{BUCKET}",
            "backup_password": "bench-password-not-secret",
            "backup_environment": {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-not-secret"},
        }
        said = SAID.search(" ".join(play("playbooks/backup.yml", run_backup=True, **settings).split()))
        if not said:
            raise NodeError("the output of backup.yml names no snapshot")
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
