# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known-good checksums follow the files that the collection changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine import known_good

OLD, NEW = (known_good.digest(text) for text in ("old", "new"))


def test_only_the_checksums_of_the_changed_files_change(tmp_path: Path) -> None:
    path = tmp_path / "main.json"
    files.write_json(path, {"schema": 1, "release": 2, "files": {"/a": OLD, "/b": "other"}})
    text = known_good.replaced(path, {OLD: NEW})
    assert text == files.to_json({"schema": 1, "release": 2, "files": {"/a": NEW, "/b": "other"}})
    files.write(path, text)
    assert known_good.replaced(path, {OLD: NEW}) is None
    assert known_good.recorded(path) == {"/a": NEW, "/b": "other"}


@pytest.mark.parametrize("text", [None, "{", "[]", '{"files": []}', '{"files": {"/a": 1}}'])
def test_checksums_that_are_missing_or_damaged_stay(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "main.json"
    files.write(path, text)
    assert known_good.replaced(path, {OLD: NEW}) is None and files.text(path) == text
    assert known_good.recorded(path) == ({"/a": "1"} if "/a" in (text or "") else {})
