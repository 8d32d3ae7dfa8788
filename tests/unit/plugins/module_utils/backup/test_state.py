# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of the jobs: the state file, and its metrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import program, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import Settings

SETTINGS = Settings("/srv/x", "n1", ("/etc",), intervals={"backup": 86400, "prune": 0})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path)
    places.metrics.parent.mkdir(parents=True)
    return places


def test_a_node_without_jobs_has_an_empty_state(places: Places) -> None:
    assert state.read(places) == {"schema": 1, "repository": "", "jobs": {}}
    places.work.mkdir(parents=True)
    places.state.write_text('{"schema": 9}')
    with pytest.raises(ValueError, match=r"is not of schema 1\. Remove it"):
        state.read(places)


def test_a_failed_job_keeps_the_last_success(places: Places) -> None:
    state.set_up(places, SETTINGS, 100.0)
    state.begin(places, SETTINGS, "backup", 200.0)
    assert state.read(places)["jobs"] == {"backup": {"began": 200.0}}
    known = state.end(places, SETTINGS, "backup", 212.34, snapshot="ab", bytes=7, added=3)
    assert known == {
        "began": 200.0,
        "ended": 212.34,
        "seconds": 12.3,
        "ok": True,
        "error": "",
        "succeeded": 212.34,
        "snapshot": "ab",
        "bytes": 7,
        "added": 3,
    }
    state.begin(places, SETTINGS, "backup", 300.0)
    failed = state.end(places, SETTINGS, "backup", 301.0, "no space")
    assert (failed["ok"], failed["error"], failed["succeeded"], failed["snapshot"]) == (False, "no space", 212.34, "ab")
    value = state.read(places)
    assert (value["since"], value["host"], value["repository"]) == (100.0, "n1", "/srv/x")
    lines = places.metrics.read_text().splitlines()
    for line in (
        'inference_backup_interval_seconds{job="backup"} 86400',
        'inference_backup_interval_seconds{job="prune"} 0',
        'inference_backup_since_timestamp_seconds{job="backup"} 100',
        'inference_backup_last_success_timestamp_seconds{job="backup"} 212.340',
        'inference_backup_last_run_timestamp_seconds{job="backup"} 301',
        'inference_backup_last_run_success{job="backup"} 0',
        'inference_backup_duration_seconds{job="backup"} 1',
        "inference_backup_size_bytes 7",
        "inference_backup_added_bytes 3",
    ):
        assert line in lines, line
    assert not any('interval_seconds{job="check"}' in line for line in lines)


def test_a_job_that_is_interrupted_twice_in_a_row_counts_as_failed(places: Places) -> None:
    """Otherwise no alert would report that the time limit cuts off each prune. A reboot cuts off one run alone."""
    state.set_up(places, SETTINGS, 100.0)
    state.begin(places, SETTINGS, "prune", 200.0)
    state.end(places, SETTINGS, "prune", 201.0, snapshots=3)
    good, bad = (f'inference_backup_last_run_success{{job="prune"}} {value}' for value in (1, 0))
    for began in (300.0, 400.0):
        state.begin(places, SETTINGS, "prune", began)
        assert good in places.metrics.read_text()
    state.begin(places, SETTINGS, "prune", 500.0)
    assert bad in places.metrics.read_text() and state.is_set_up(places, SETTINGS)
    assert "prune       began 1970-01-01 00:08:20 UTC: was interrupted" in program.as_text(state.read(places), 600.0)
    state.end(places, SETTINGS, "prune", 501.0, snapshots=3)
    assert good in places.metrics.read_text()
    state.begin(places, SETTINGS, "prune", 600.0)
    state.begin(places, SETTINGS, "prune", 700.0)
    assert good in places.metrics.read_text()


def test_settings_with_another_repository_begin_a_new_state(places: Places) -> None:
    state.set_up(places, SETTINGS, 100.0)
    state.begin(places, SETTINGS, "backup", 200.0)
    state.set_up(places, Settings("/srv/y", "n1", ("/etc",)), 300.0)
    assert state.read(places) == {"schema": 1, "repository": "/srv/y", "jobs": {}, "since": 300.0, "host": "n1"}


def test_without_node_exporter_there_are_no_metrics(tmp_path: Path) -> None:
    places = Places(tmp_path)
    state.set_up(places, SETTINGS, 100.0)
    assert places.state.exists() and not places.metrics.exists()


def test_a_host_that_no_longer_prunes_forgets_that_a_prune_failed(places: Places) -> None:
    """Otherwise the alert BackupFailed would not end."""
    state.set_up(places, SETTINGS, 100.0)
    state.begin(places, SETTINGS, "prune", 200.0)
    state.end(places, SETTINGS, "prune", 201.0, "Forbidden")
    failed = 'inference_backup_last_run_success{job="prune"}'
    assert f"{failed} 0" in places.metrics.read_text()
    append_only = replace(SETTINGS, append_only=True)
    assert not state.is_set_up(places, append_only)
    state.set_up(places, append_only, 300.0)
    assert state.is_set_up(places, append_only) and failed not in places.metrics.read_text()
    assert "prune       not on this host" in program.as_text(state.read(places), 400.0)
    state.set_up(places, SETTINGS, 500.0)
    assert state.is_set_up(places, SETTINGS)
    assert "prune       never ran" in program.as_text(state.read(places), 600.0)
