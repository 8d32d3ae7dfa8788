# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of the backup on a host."""

from __future__ import annotations

from pathlib import Path

import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.backup import places, trees
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places

DEFAULTS = Path(__file__).parents[5] / "roles/backup/defaults/main.yml"


def test_each_file_of_the_backup_has_its_path() -> None:
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


def test_a_backup_saves_none_of_its_own_files_but_the_units(tmp_path: Path) -> None:
    host = Places(tmp_path)
    directories = (host.etc, host.aside, host.cache, host.staging, host.library)
    own = [*(directory / "file" for directory in directories), host.state, host.lock, host.metrics, host.command]
    units = [host.units / name for job in places.JOBS for name in (places.service(job), places.timer(job))]
    saved = tmp_path / "etc/inference/site.json"
    for file in (*own, *units, saved):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    defaults = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))
    found = trees.listing(tmp_path, defaults["backup_paths"], defaults["backup_exclude"])
    files = {tmp_path / path for path, entry in found.items() if entry.kind == "file"}
    assert files == {*units, saved}


def test_each_job_has_its_unit() -> None:
    assert [places.service(job) for job in places.JOBS] == [
        "inference-backup.service",
        "inference-backup-prune.service",
        "inference-backup-check.service",
    ]
    assert places.timer("prune") == "inference-backup-prune.timer"
