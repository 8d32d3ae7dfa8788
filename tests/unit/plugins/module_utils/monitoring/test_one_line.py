# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML in which each text takes one line."""

from __future__ import annotations

import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.one_line import dump


class Text(str):
    """A text type that YAML's dumper does not support, as Ansible's own types."""


def test_each_text_takes_one_line() -> None:
    secret = "line one\nline two"
    shared = {"a": 1}
    value = {"zone": Text("é"), "password": secret, "long": "many " * 60, "one": shared, "two": shared, "t": (1, None)}
    text = dump(value)
    assert yaml.safe_load(text) == {**value, "t": [1, None]}
    assert 'password: "line one\\nline two"\n' in text
    assert text.startswith("zone: é\npassword: ")
    assert "&" not in text and len([line for line in text.splitlines() if "many" in line]) == 1
