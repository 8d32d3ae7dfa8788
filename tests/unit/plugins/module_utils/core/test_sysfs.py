# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of sysfs: if an attribute is missing or cannot be read, only this attribute is unknown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core import sysfs


def test_the_names_and_numbers_of_a_directory_are_sorted(tmp_path: Path) -> None:
    for name in ("10", "9", "1st", "-1", "²"):
        (tmp_path / name).touch()
    assert sysfs.names(tmp_path) == ["-1", "10", "1st", "9", "²"]
    assert sysfs.numbers(tmp_path) == [9, 10]


def test_a_path_that_is_no_directory_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "missing"):
        assert sysfs.names(path) == sysfs.numbers(path) == []
        assert sysfs.read_each(path) == {}


def test_a_path_with_a_null_byte_is_none(tmp_path: Path) -> None:
    assert sysfs.read(tmp_path / "a\0b") is None


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(bytes(range(64)))
    assert sysfs.read_bytes(tmp_path / "config", 4) == bytes(range(4))
    assert sysfs.read_bytes(str(tmp_path / "config")) == bytes(range(64))


def test_each_attribute_of_a_directory_is_read(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("4: ACTIVE\n")
    (tmp_path / "rate").write_text("400\n")
    (tmp_path / "refuses").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    assert sysfs.read_each(tmp_path) == {"state": "4: ACTIVE", "rate": "400", "refuses": None}
    assert sysfs.read_each(tmp_path, unwanted=re.compile("r.*").fullmatch) == {"state": "4: ACTIVE"}
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_text_that_is_no_number_is_none() -> None:
    assert [sysfs.integer(text) for text in ("7", "", None, "N/A (no PMA)", "9" * 5000)] == [7, None, None, None, None]
    assert sysfs.integer("0x1f", 16) == 31


def test_an_unreadable_attribute_is_none(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "number").write_bytes(b"\xff\xfe")
    assert sysfs.read(tmp_path / "directory") is None
    assert sysfs.read(tmp_path / "missing") is None
    assert sysfs.read_int(tmp_path / "number") is None
    assert sysfs.link_name(tmp_path / "number") is None
