# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes report, in the words of the screen and the page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import BAD, GOOD, NONE, POOR, ago, read

from .conftest import BACKUP, FLEET, NOW, instance, node


def test_an_instance_that_failed_or_has_an_old_probe_does_not_serve() -> None:
    reported = node(
        instance(probe=None, serving=False, state="failed"),
        instance("old", probe={"verdict": "healthy", "since": "2026-05-01T11:00:00Z", "stale": True}),
    )
    first, second = read({"gpu1": reported}, NOW).nodes[0].instances
    assert (first.verdict.text, first.verdict.tone, first.serving) == ("failed", BAD, False)
    assert (second.verdict.text, second.verdict.tone, second.serving) == ("stale", POOR, False)


@pytest.mark.parametrize(
    ("reported", "text", "tone"),
    [
        ({}, "9h", GOOD),
        ({"ok": False}, "9h, failed", BAD),
        ({"succeeded": None, "ok": False}, "never, failed", BAD),
        # The schedule decides when a backup is overdue, as with the alert BackupOld.
        ({"succeeded": "2026-04-28T12:00:00Z"}, "3d", POOR),
        ({"succeeded": "2026-04-28T12:00:00Z", "interval": None}, "3d", POOR),
        ({"succeeded": "2026-04-28T12:00:00Z", "interval": 604800}, "3d", GOOD),
        ({"succeeded": "2026-04-22T12:00:00Z", "interval": 604800}, "9d", POOR),
        ({"succeeded": "2026-04-30T10:00:00Z", "interval": 3600}, "1d", POOR),
        ({"succeeded": "2026-03-01T12:00:00Z", "interval": 0}, "61d", GOOD),
        # The first backup runs or waits for its time. A day after its time, it is overdue.
        ({"succeeded": None, "ok": None, "since": "2026-04-30T12:00:00Z"}, "never", NONE),
        ({"succeeded": None, "ok": None, "since": "2026-04-29T11:00:00Z"}, "never", POOR),
        ({"succeeded": None, "ok": None, "interval": 0}, "never", NONE),
        ({"succeeded": None, "ok": None, "since": None}, "never", NONE),
    ],
)
def test_a_backup_has_its_age_and_a_tone(reported: dict[str, Any], text: str, tone: str) -> None:
    word = read({"a": node(backup={**BACKUP, **reported})}, NOW).nodes[0].backup
    assert (word.text, word.tone) == (text, tone)


def test_an_age_has_its_largest_unit() -> None:
    for seconds, text in ((0, "0s"), (59, "59s"), (61, "1m"), (7200, "2h"), (86400 * 3.9, "3d"), (-50, "0s")):
        assert ago(NOW, datetime.fromtimestamp(NOW.timestamp() - seconds, UTC)) == text


def test_nodes_that_gave_no_answer_are_unreachable() -> None:
    fleet = read({**FLEET, "gpu5": {}}, NOW)
    assert [one.name for one in fleet.nodes] == ["gpu1", "gpu2"]
    assert fleet.unreachable == {
        "gpu3": "Failed to connect to the host via ssh: no route",
        "gpu4": "sudo: a password is required",
        "gpu5": "did not answer",
    }


def test_facts_that_need_attention_are_notes() -> None:
    away = instance("old", desired=False, problems=["its unit\nis damaged"])
    gpus = {"present": 0, "reported": 0, "error": "no driver"}
    reported = node(away, gpus=gpus, backup={**BACKUP, "error": "no space"}, errors={"lock": "refused"})
    assert read({"a": reported}, NOW).nodes[0].notes == [
        "old is not in the inventory",
        "old: its unit is damaged",
        "GPUs: no driver",
        "backup: no space",
        "lock is unknown: refused",
    ]


def test_unknown_facts_are_not_shown_as_good() -> None:
    blind = node(instances=None, system=None, gpus=None, doctor=None, backup=None, updated="soon")
    (found,) = read({"a": blind}, NOW).nodes
    assert (found.doctor.tone, found.backup.text, found.updated, list(found.instances)) == (POOR, "none", None, [])
