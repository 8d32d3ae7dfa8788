# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the sources, one error that names every mistake, and the fingerprints of keys."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.apt import FilterModule, apt_files, key_refusal

DEBIAN: dict[str, Any] = {
    "name": "debian",
    "uris": ["http://deb.example.com/debian"],
    "suites": ["bookworm"],
    "components": ["main"],
}


def test_files_are_below_the_given_directory() -> None:
    files = apt_files([DEBIAN], "/trial/etc/apt")
    (source,) = [file for file in files if file["path"].endswith(".sources")]
    assert source["path"] == "/trial/etc/apt/sources.list.d/debian.sources"
    assert "URIs: http://deb.example.com/debian\n" in source["text"]
    assert {file["mode"] for file in files} <= {"0644", "0600"}


def test_a_password_of_a_proxy_is_for_root_alone() -> None:
    files = apt_files([DEBIAN], "/etc/apt", http_proxy="http://me:secret@proxy.example.com:3128")
    assert {file["mode"] for file in files if "secret" in file["text"]} == {"0600"}


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ({**DEBIAN, "uris": ["nonsense"]}, {}, "source debian: uris: 'nonsense'"),
        (DEBIAN, {"http_proxy": "nonsense"}, "http_proxy: must be SCHEME"),
        ({**DEBIAN, "uris": ["nonsense"]}, {"http_proxy": "nonsense"}, "source debian: .*\nhttp_proxy: must be SCHEME"),
    ],
)
def test_a_mistake_is_an_error_of_the_template(source: dict[str, Any], more: dict[str, str], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"The package sources: {words}"):
        apt_files([source], "/etc/apt", **more)


def test_ansible_finds_the_filter() -> None:
    assert FilterModule().filters() == {"apt_files": apt_files, "key_refusal": key_refusal}


def test_a_key_is_compared_with_its_fingerprints() -> None:
    """The key is in base64, as slurp returns a file."""
    key = base64.b64encode(bytes.fromhex("c60e0400000001160001020304050607")).decode()
    words = key_refusal(key, ["0" * 40])
    found = words.split()[3].rstrip(",")
    assert words.startswith("has the fingerprint ") and key_refusal(key, [found]) == key_refusal(key, []) == ""
