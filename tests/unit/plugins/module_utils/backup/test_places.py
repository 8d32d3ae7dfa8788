# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of the backup on a node."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.backup import places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places


def test_the_paths_are_outside_of_the_saved_directories() -> None:
    node = Places(Path("/test"))
    found = {
        node.settings: "etc/inference-backup/settings.json",
        node.password: "etc/inference-backup/password",
        node.environment: "etc/inference-backup/environment.json",
        node.key: "etc/inference-backup/id_sftp",
        node.known_hosts: "etc/inference-backup/known_hosts",
        node.state: "var/lib/inference-backup/state.json",
        node.aside: "var/lib/inference-backup/aside",
        node.lock: "var/lib/inference-backup/lock",
        node.cache: "var/cache/inference-backup",
        node.staging: "run/inference-backup/staging",
        node.metrics: "var/lib/prometheus/node-exporter/inference-backup.prom",
        node.command: "usr/local/sbin/inference-backup",
        node.library: "usr/local/lib/inference_backup",
        node.units: "etc/systemd/system",
    }
    assert found == {Path("/test") / path: path for path in found.values()}
    assert Places().etc == Path("/etc/inference-backup")


def test_each_job_has_its_unit() -> None:
    assert [places.service(job) for job in places.JOBS] == [
        "inference-backup.service",
        "inference-backup-prune.service",
        "inference-backup-check.service",
    ]
    assert places.timer("prune") == "inference-backup-prune.timer"
