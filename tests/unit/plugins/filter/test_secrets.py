# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that finds weak secrets."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.filter.secrets import FilterModule


def test_lines_name_the_host_and_only_its_own_variables() -> None:
    weak_secrets = FilterModule().filters()["weak_secrets"]
    hostvars = {"one": {"gang_key": "change-me", "motd": "change-me"}, "two": {"gang_key": "0123456789abcdef"}}
    (line,) = weak_secrets(hostvars, "one")
    assert line.startswith("one: gang_key: is a placeholder") and weak_secrets(hostvars, "two") == []
