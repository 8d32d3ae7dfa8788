# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values in TOML files: what was asked for is set, and every other line stays."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.debian.toml_edit import TomlError, set_values

# Of the form that NVIDIA's toolkit writes.
CONFIG = """\
#accept-nvidia-visible-devices-as-volume-mounts = false
supported-driver-capabilities = "compat32,compute"

[nvidia-container-cli]
#mode = "x"
environment = []
load-kmods = true

[nvidia-container-runtime]
#debug = "/var/log/x.log"
log-level = "info"
mode = "auto" # what the node looks like
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
mode = "kept"
"""
CDI = {"nvidia-container-runtime": {"mode": "cdi"}}


def test_one_line_changes() -> None:
    edited = set_values(CONFIG, CDI)
    changed = [line for line in edited.splitlines() if line not in CONFIG.splitlines()]
    assert changed == ['mode = "cdi"']
    assert len(edited.splitlines()) == len(CONFIG.splitlines())
    assert tomllib.loads(edited)["nvidia-container-runtime"]["mode"] == "cdi"
    assert set_values(edited, CDI) == edited


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '[nvidia-container-runtime]\nmode = "cdi"\n'),
        ("[a]\nx = 1\n", '[a]\nx = 1\n\n[nvidia-container-runtime]\nmode = "cdi"\n'),
        ("[ nvidia-container-runtime ] # ours\n[b]", '[ nvidia-container-runtime ] # ours\nmode = "cdi"\n[b]\n'),
    ],
)
def test_what_is_not_there_is_added(text: str, expected: str) -> None:
    assert set_values(text, CDI) == expected


def test_values_of_every_kind() -> None:
    values: dict[str, dict[str, Any]] = {"t": {"text": 'a"b\n\u00e9', "number": 7, "truth": False, "list": ["a", "b"]}}
    assert tomllib.loads(set_values("[t]\nnumber = 6\n", values)) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode =", "is no valid TOML"),
        ("nvidia-container-runtime = 1", "is a value in it"),
        ('["nvidia-container-runtime"]\nmode = "auto"\n', "cannot be set line by line"),
        ('nvidia-container-runtime.mode = "auto"\n', "cannot be set line by line"),
        ('[nvidia-container-runtime]\nmode = """\nauto"""\n', "cannot be set line by line"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, message: str) -> None:
    with pytest.raises(TomlError, match=message):
        set_values(text, CDI)


@given(st.integers(0, len(CONFIG)), st.integers(0, len(CONFIG)))
def test_a_damaged_file_is_edited_right_or_refused(start: int, length: int) -> None:
    text = CONFIG[:start] + CONFIG[start + length :]
    try:
        edited = set_values(text, CDI)
    except TomlError:
        return
    data = tomllib.loads(edited)
    assert data["nvidia-container-runtime"].pop("mode") == "cdi"
    old = tomllib.loads(text)
    assert {**old, "nvidia-container-runtime": {**old.get("nvidia-container-runtime", {}), "mode": "cdi"}} == {
        **data,
        "nvidia-container-runtime": {**data["nvidia-container-runtime"], "mode": "cdi"},
    }
