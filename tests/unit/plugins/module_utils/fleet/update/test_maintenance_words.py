# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for a maintenance that cannot begin, has stopped, or has found bad certificates or models."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.maintenance_words import (
    failure,
    mistakes,
    unsound,
)

KNOWN = ["updates", "reboot"]
SETTINGS: dict[str, Any] = {
    "maintenance_parts": ["updates"],
    "maintenance_updates": "security",
    "maintenance_certificate_warn_days": 30,
    "maintenance_certificate_fail_days": 7,
    "maintenance_journal_max_mib": 0,
    "maintenance_journal_max_days": "0",
    "maintenance_keep_models": 1,
    "maintenance_keep_releases": 0,
}


def test_settings_that_are_allowed_have_no_text() -> None:
    assert mistakes(SETTINGS, KNOWN) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("maintenance_parts", [], r"must be of updates, reboot (found none)"),
        ("maintenance_parts", ["update"], r"must be of updates, reboot (found update)"),
        ("maintenance_updates", "some", "maintenance_updates must be one of security, all, none (found some)"),
        ("maintenance_certificate_fail_days", "31", "fail_days (31) exceeds maintenance_certificate_warn_days (30)"),
        ("maintenance_journal_max_mib", -1, "maintenance_journal_max_mib must be 0 or more (found -1)"),
        ("maintenance_journal_max_days", -1, "maintenance_journal_max_days must be 0 or more (found -1)"),
        ("maintenance_keep_models", "0", "maintenance_keep_models must be 1 or more (found 0)"),
        ("maintenance_keep_releases", -1, "maintenance_keep_releases must be 0 or more (found -1)"),
    ],
)
def test_each_mistake_is_named_with_what_is_allowed(name: str, value: object, words: str) -> None:
    (found,) = mistakes({**SETTINGS, name: value}, KNOWN)
    assert words in found


def test_all_mistakes_are_named_at_once() -> None:
    assert len(mistakes({**SETTINGS, "maintenance_parts": [], "maintenance_keep_models": 0}, KNOWN)) == 2


def test_a_failed_maintenance_names_the_nodes_and_what_to_do() -> None:
    lines = failure("b", ["a"], "was not touched.", []).splitlines()
    assert lines[:2] == ["baremetal.inference.maintenance stopped: it failed on a.", "b was not touched."]
    assert lines[2].startswith("Remove the cause, and run baremetal.inference.maintenance again")
    assert "c, d could not be reached when the run began." in failure("b", ["a"], "is done.", ["c", "d"])


def test_certificates_and_models_that_are_unsound_are_named() -> None:
    near = {"path": "/etc/tls.pem", "status": "fail", "words": "expires in 3 days"}
    facts: dict[str, Any] = {"certificates": [near, {**near, "status": "warn", "path": "/x"}], "damaged": []}
    assert "damaged: /etc/tls.pem expires in 3 days. Renew" in unsound(facts)
    assert "in 3 days; tiny has another checksum. Renew" in unsound({**facts, "damaged": ["tiny has another checksum"]})
    assert unsound({"certificates": [{**near, "status": "warn"}], "damaged": []}) == ""
