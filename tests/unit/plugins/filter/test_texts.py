# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that replaces paths by the texts of the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.texts import FilterModule

file_texts = FilterModule().filters()["file_texts"]


def test_a_path_becomes_the_text_and_a_text_stays(tmp_path: Path) -> None:
    file, pem = tmp_path / "ca.pem", "-----BEGIN CERTIFICATE-----\n" + "A" * 5000 + "\n"
    file.write_text("the text\n\n")
    given = [
        {"ca": str(file), "registry": "r"},
        {"ca": pem},
        {"ca": str(tmp_path)},
        {"ca": "/missing"},
        {"registry": "r"},
    ]
    found = file_texts(given, "ca")
    assert found == [{"ca": "the text\n\n", "registry": "r"}, *given[1:]]
    assert given[0]["ca"] == str(file)


@pytest.mark.parametrize("given", ["/keys/a.pub", {"key": "text"}, ["/keys/a.pub", 3, {"key": 7}], [], None])
def test_a_value_of_another_form_stays(given: object) -> None:
    assert file_texts(given, "key") == given


@pytest.mark.parametrize(
    ("content", "words"), [(b"$ANSIBLE_VAULT;1.1;AES256\n61", "is encrypted"), (b"\xff\xfe", "read")]
)
def test_a_file_without_a_text_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(AnsibleFilterError, match=words):
        file_texts([{"ca": str(tmp_path / "ca.pem")}], "ca")
