# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""APT's declared sources and proxies: their files, their mistakes, and the messages of apt about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_sources as apt
from ansible_collections.baremetal.inference.plugins.module_utils.debian import openpgp

DEBIAN: dict[str, Any] = {
    "name": "debian",
    "uris": ["https://mirror.example/debian"],
    "suites": ["$(CODENAME)", "$(CODENAME)-updates"],
    "components": ["main", "non-free-firmware"],
    "key": "/usr/share/keyrings/debian-archive-keyring.gpg",
}
PUBLIC = f"{apt.ARMOUR}\n\nxg4EAAAAARYAAQIDBAUGBw==\n-----END PGP PUBLIC KEY BLOCK-----"
KEY = f"{apt.ARMOUR}\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----"


def mistakes(**changed: Any) -> str:
    with pytest.raises(InputError) as error:
        apt.read_sources([{**DEBIAN, **changed}])
    return str(error.value)


def test_a_source_is_written_as_deb822() -> None:
    (source,) = apt.read_sources([{**DEBIAN, "architectures": ["amd64"]}])
    assert source.text("/etc/apt", "trixie").splitlines()[1:] == [
        "Types: deb",
        "URIs: https://mirror.example/debian",
        "Suites: trixie trixie-updates",
        "Components: main non-free-firmware",
        "Architectures: amd64",
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
    ]


def test_a_key_given_as_text_is_in_the_file_that_the_source_names() -> None:
    sources = apt.read_sources([{**DEBIAN, "key": KEY}])
    files = apt.declared_files(sources, apt.Transport(), "/trial", "bookworm")
    assert files["keyrings/inference-debian.asc"].text == KEY + "\n"
    assert "Signed-By: /trial/keyrings/inference-debian.asc\n" in files["sources.list.d/debian.sources"].text


def test_an_absent_source_needs_only_its_name_and_makes_no_file() -> None:
    sources = apt.read_sources([{"name": "old", "state": "absent"}])
    assert apt.declared_files(sources, apt.Transport(), "/etc/apt", "bookworm") == {}


def test_a_flat_repository_has_no_components() -> None:
    apt.read_sources([{**DEBIAN, "suites": ["./"], "components": []}])
    assert "suites: './'" in mistakes(suites=["./"])
    assert "components: is missing" in mistakes(components=[])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "../x"}, "name: '../x'"),
        ({"uris": []}, "uris: is missing"),
        ({"suites": []}, "suites: is missing"),
        ({"uris": ["ftp://x/"]}, "must begin with one of"),
        ({"uris": ["https:///debian"]}, "has no host"),
        ({"components": ["main contrib"]}, "'main contrib'"),
        ({"suites": ["a\nTrusted: yes"]}, "must be one word"),
        ({"types": ["rpm"]}, "must be deb or deb-src"),
        ({"key": "nonsense"}, "absolute path on the node"),
        ({"uris": ["http://[mirror/debian"]}, "has no host that can be read"),
    ],
)
def test_a_source_that_apt_cannot_read_is_refused(changed: dict[str, Any], words: str) -> None:
    assert words in mistakes(**changed)


@pytest.mark.parametrize(
    "uri",
    [
        "htps://bob:secret@mirror/debian",
        "bob:secret@mirror/debian",
        "https://bob:secret@mirror/debian https://b",
        "https://b https://bob:secret@mirror/debian",
        "https://bob:my#secret@mirror/debian",
        "https://bob:secret@[x/ y",
    ],
)
def test_no_message_shows_the_login_of_a_source(uri: str) -> None:
    words = mistakes(uris=[uri])
    assert "uris" in words and "secret" not in words
    assert apt.redact("apt failed", ["http://[x"]) == "apt failed"


PIN = openpgp.fingerprints(PUBLIC.encode())[0]


@pytest.mark.parametrize("text", [PIN, PIN.lower(), " ".join(PIN[at : at + 4] for at in range(0, 40, 4))])
def test_a_key_with_one_of_the_fingerprints_is_accepted(text: str) -> None:
    (source,) = apt.read_sources([{**DEBIAN, "key": PUBLIC, "fingerprints": ["0" * 40, text]}])
    assert source.fingerprints == ("0" * 40, PIN)
    # A key declared by its path is on the node: the module reads the key.
    (source,) = apt.read_sources([{**DEBIAN, "fingerprints": [text]}])
    assert apt.check_key(source, PUBLIC.encode()) == []
    assert "cannot be compared with the fingerprints: it is neither" in str(apt.check_key(source, b"<html>")[0])
    assert apt.check_key(replace(source, fingerprints=()), b"<html>") == []


def test_a_key_that_does_not_match_its_fingerprints_is_refused() -> None:
    words = mistakes(key=PUBLIC, fingerprints=["0" * 40])
    assert f"key: has the fingerprint {PIN}, but fingerprints allows {'0' * 40}" in words
    assert "cannot be compared with the fingerprints: its armour is damaged" in mistakes(key=KEY, fingerprints=[PIN])
    assert "fingerprints: '3BF863CC': must be 40 or 64 hexadecimal digits" in mistakes(
        key=PUBLIC, fingerprints=["3bf863cc"]
    )
    assert "key: is missing: fingerprints are for a key" in mistakes(key="", fingerprints=[PIN])


def test_all_mistakes_are_found_at_once_and_show_no_login() -> None:
    with pytest.raises(InputError) as error:
        apt.read_sources([{**DEBIAN, "uris": ["https://me:secret@x/"]}, {**DEBIAN, "types": ["x"]}])
    assert len(error.value.problems) == 3 and "is used twice" in str(error.value)
    assert "secret" not in str(error.value) and "auth.conf.d" in str(error.value)


def test_a_proxy_and_hosts_without_a_proxy_are_written() -> None:
    transport = apt.Transport("http://u:p@proxy:3128", "", ("mirror.example",))
    assert transport.problems() == []
    assert transport.text("/etc/apt").splitlines()[1:] == [
        'Acquire::http::Proxy "http://u:p@proxy:3128";',
        'Acquire::http::Proxy::mirror.example "DIRECT";',
    ]
    assert apt.Transport().text("/etc/apt") == ""


def test_only_a_file_with_a_login_is_private() -> None:
    def mode(proxy: str) -> int:
        return apt.declared_files([], apt.Transport(https_proxy=proxy), "/etc/apt", "x")[apt.PROXY_FILE].mode

    assert (mode("http://proxy:3128"), mode("http://u:p@proxy:3128")) == (0o644, 0o600)


@pytest.mark.parametrize(
    "transport",
    [
        apt.Transport(http_proxy="proxy:3128"),
        apt.Transport(http_proxy="http://proxy:port"),
        apt.Transport(http_proxy='http://proxy:1";x "'),
        apt.Transport(https_proxy="ftp://proxy:3128"),
        apt.Transport(no_proxy=("*.example",)),
        apt.Transport(no_proxy=("10.0.0.0/8",)),
        apt.Transport(no_proxy=(".example",)),
        apt.Transport(ca="nonsense"),
        apt.Transport(ca=f"{apt.CERTIFICATE}\nnonsense\n-----END CERTIFICATE-----"),
    ],
)
def test_an_unusable_proxy_or_authority_is_a_problem(transport: apt.Transport) -> None:
    assert len(transport.problems()) == 1


def test_logins_in_a_text_are_redacted() -> None:
    text = "http://u:s3cret@proxy:3128 said s3cret"
    assert (
        apt.redact(text, ["http://u:s3cret@proxy:3128", "http://other"]) == "http://********@proxy:3128 said ********"
    )


def test_only_lines_outside_comments_are_sources() -> None:
    assert apt.active("# x\n\ndeb http://x y z\n")
    assert not apt.active("# deb http://x y z\n\n  # x\n")


# Messages of apt 2.6 about three sources. Its errors do not name the source at 127.0.0.1:9.
OUTPUT = """\
Err:1 http://127.0.0.1:9/debian test InRelease
  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)
Err:2 file:/srv/other test InRelease
  NO_PUBKEY 58FE042354712FE5
"""
WORDS = """\
W: Skipping acquire of configured file 'x/binary-amd64/Packages' as repository 'file:/srv/repo test InRelease' doesn't \
have the component 'x' (component misspelt in sources.list?)
W: GPG error: file:/srv/other test InRelease: NO_PUBKEY 58FE042354712FE5
E: The repository 'file:/srv/other test InRelease' is not signed.
E: Some index files failed to download. They have been ignored, or old ones used instead.
"""


def test_each_message_of_apt_gets_the_name_of_its_source() -> None:
    entries = [("dead", "http://127.0.0.1:9/debian"), ("stranger", "file:/srv/other"), ("thin", "file:///srv/repo/")]
    plain = {"suites": ["test"], "components": ["x"]}
    sources = apt.read_sources([{"name": name, "uris": [uri], **plain} for name, uri in entries])
    found = [apt.attribute(line, sources, "bookworm") for line in apt.complaints(WORDS, OUTPUT)]
    assert [line.split(": ")[0] for line in found] == [
        "source thin",
        "source stranger",
        "source stranger",
        "source dead",
    ]
    assert "Connection refused" in found[-1]
    assert [apt.fatal(line) for line in apt.complaints(WORDS)] == [True, False, True]


def test_of_two_sources_with_one_address_a_message_belongs_to_the_source_with_its_suite() -> None:
    sources = apt.read_sources([{**DEBIAN, "name": "a"}, {**DEBIAN, "name": "b", "suites": ["$(CODENAME)-security"]}])
    line = "E: The repository 'https://mirror.example/debian trixie-security Release' does not have a Release file."
    assert apt.attribute(line, sources, "trixie").startswith("source b: ")
    line = "E: Conflicting values set for option Signed-By regarding source https://mirror.example/debian/ trixie"
    assert apt.attribute(line, sources, "trixie").startswith("source a")


def test_sources_that_are_configured_twice_are_found() -> None:
    line = (
        "W: Target Packages (main/binary-amd64/Packages) is configured multiple times in /a.list:1 and /b.sources:1\n"
    )
    assert apt.duplicates(line + line.replace("amd64", "all")) == [("/a.list", "/b.sources")]
