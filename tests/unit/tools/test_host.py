# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of this machine's apt sources the test images are built from."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts import host

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEBIAN = "http://mirror.example.com/debian"
SECURITY = "http://security.example.com/debian-security"

ONE_LINE: dict[str, tuple[str, list[str]]] = {
    "plain": (f"deb {DEBIAN} bookworm main contrib\n", [f"deb {DEBIAN} trixie main"]),
    "updates and security": (
        f"deb {DEBIAN} bookworm-updates main\ndeb {SECURITY} bookworm-security main\n",
        [f"deb {DEBIAN} trixie-updates main", f"deb {SECURITY} trixie-security main"],
    ),
    "a trailing slash and tabs": (f"deb\t{DEBIAN}/\tbookworm\tmain\n", [f"deb {DEBIAN}/ trixie main"]),
    "a comment behind": (f"deb {DEBIAN} bookworm main # contrib\n", [f"deb {DEBIAN} trixie main"]),
    "options, Debian's key": (
        f"deb [arch=amd64 signed-by={KEYRING}] http://mirror.example/d bookworm main\n",
        ["deb http://mirror.example/d trixie main"],
    ),
    "options without a key": (f"deb [ arch=amd64 ] {DEBIAN} bookworm main\n", [f"deb {DEBIAN} trixie main"]),
    "another key": (f"deb [signed-by=/etc/apt/keyrings/x.gpg] {DEBIAN} bookworm main\n", []),
    "another repository": ("deb https://download.example/linux/debian-x bookworm main\n", []),
    "commented out": (f"# deb {DEBIAN} bookworm main\n", []),
    "source packages": (f"deb-src {DEBIAN} bookworm main\n", []),
    "another release": (f"deb {DEBIAN} trixie main\ndeb {DEBIAN} bookworm-backports main\n", []),
    "without main": (f"deb {DEBIAN} bookworm contrib\n", []),
    "a disk": ("deb file:/media/debian bookworm main\ndeb cdrom:[Debian 12]/debian bookworm main\n", []),
    "nothing": ("", []),
}

DEB822: dict[str, tuple[str, list[str]]] = {
    "as Debian's installer writes it": (
        f"Types: deb deb-src\nURIs: {DEBIAN}\nSuites: bookworm bookworm-updates\n"
        f"Components: main non-free-firmware\nSigned-By: {KEYRING}\n\n"
        f"Types: deb\nURIs: {SECURITY}\nSuites: bookworm-security\nComponents: main\nSigned-By: {KEYRING}\n",
        [
            f"deb {DEBIAN} trixie main",
            f"deb {DEBIAN} trixie-updates main",
            f"deb {SECURITY} trixie-security main",
        ],
    ),
    "two mirrors on lines of their own": (
        f"Types: deb\nURIs:\n {DEBIAN}\n https://mirror.example/debian\nSuites: bookworm\nComponents: main\n",
        [f"deb {DEBIAN} trixie main", "deb https://mirror.example/debian trixie main"],
    ),
    "a comment inside": (
        f"# Types: deb-src\nTypes: deb\n# URIs: http://old.example\nURIs: {DEBIAN}\n"
        "Suites: bookworm\nComponents: main\n",
        [f"deb {DEBIAN} trixie main"],
    ),
    "field names in any case": (
        f"types: deb\nuris: {DEBIAN}\nsuites: bookworm\ncomponents: main\n",
        [f"deb {DEBIAN} trixie main"],
    ),
    "disabled": (f"Enabled: no\nTypes: deb\nURIs: {DEBIAN}\nSuites: bookworm\nComponents: main\n", []),
    "source packages": (f"Types: deb-src\nURIs: {DEBIAN}\nSuites: bookworm\nComponents: main\n", []),
    "another repository": (
        "Types: deb\nURIs: https://download.example/debian\nSuites: bookworm\nComponents: main\nSigned-By: /x.asc\n",
        [],
    ),
    "a key in the file": (
        f"Types: deb\nURIs: {DEBIAN}\nSuites: bookworm\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n",
        [],
    ),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), ONE_LINE.values(), ids=ONE_LINE.keys())
def test_one_line_sources_are_read(text: str, expected: list[str]) -> None:
    assert host.parse(text, "bookworm", "trixie", deb822=False) == expected


@pytest.mark.parametrize(("text", "expected"), DEB822.values(), ids=DEB822.keys())
def test_deb822_sources_are_read(text: str, expected: list[str]) -> None:
    assert host.parse(text, "bookworm", "trixie", deb822=True) == expected


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of apt's sources on a machine with Debian 12."""
    monkeypatch.setattr(host, "APT", tmp_path)
    monkeypatch.setattr(host, "RELEASE", tmp_path / "os-release")
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_both_formats_are_read_and_no_source_twice(apt: Path) -> None:
    (apt / "sources.list").write_text(f"deb {DEBIAN} bookworm main\n")
    stanza = f"Types: deb\nURIs: {DEBIAN}\nSuites: bookworm bookworm-updates\nComponents: main\n"
    (apt / "sources.list.d/debian.sources").write_text(stanza)
    assert host.sources("bookworm") == [f"deb {DEBIAN} bookworm main", f"deb {DEBIAN} bookworm-updates main"]


def test_security_updates_alone_are_no_source(apt: Path) -> None:
    (apt / "sources.list").write_text(f"deb {SECURITY} bookworm-security main\n")
    assert host.sources("trixie") == []


def test_a_machine_that_is_not_debian_has_no_sources(apt: Path) -> None:
    (apt / "os-release").unlink()
    (apt / "sources.list").write_text(f"deb {DEBIAN} bookworm main\n")
    assert host.sources("trixie") == []
