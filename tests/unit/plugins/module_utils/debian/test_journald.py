# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""journald's drop-in, and its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import journald

OPTIONS: dict[str, Any] = {
    "max_use": "4G",
    "keep_free": "500M",
    "max_retention": "3months",
    "rate_limit_interval": "30s",
    "rate_limit_burst": 100,
}


def test_the_drop_in_has_all_settings() -> None:
    text = journald.render(journald.settings(OPTIONS), "header")
    assert text.splitlines()[:4] == ["# header", "[Journal]", "Storage=persistent", "SystemMaxUse=4G"]
    assert text.endswith("RateLimitBurst=100\n")


@pytest.mark.parametrize(("text", "wanted"), [("1000", 1000), ("16M", 16 * 2**20), ("2T", 2 * 2**40)])
def test_a_size_is_read_in_bytes(text: str, wanted: int) -> None:
    assert journald.size(text) == wanted


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_use", "4 GB"), ("max_use", "1M"), ("keep_free", "15%"), ("max_retention", "soon"), ("max_retention", "")],
)
def test_a_value_that_journald_would_ignore_or_that_is_too_small_is_refused(key: str, value: str) -> None:
    assert [problem.key for problem in journald.mistakes({**OPTIONS, key: value})] == [key]
    assert journald.mistakes(OPTIONS) == []


def test_a_later_file_that_overrides_a_setting_is_a_problem() -> None:
    text = "[Journal]\n# SystemMaxUse=1G\nSystemMaxUse = 8G\nStorage=persistent\nCompress=no\n"
    found = journald.overrides([("/etc/x.conf", text)], journald.settings(OPTIONS))
    assert [(problem.where, problem.key, problem.value) for problem in found] == [("/etc/x.conf", "SystemMaxUse", "8G")]


def test_the_last_message_about_the_size_counts() -> None:
    lines = [
        json.dumps({"JOURNAL_NAME": name, "MAX_USE": most})
        for name, most in (("Runtime Journal", "1"), ("System Journal", "2"))
    ]
    assert journald.limit("\n".join(lines)) == ("System Journal", 2)
    with pytest.raises(ValueError, match="has not logged"):
        journald.limit("-- No entries --")
