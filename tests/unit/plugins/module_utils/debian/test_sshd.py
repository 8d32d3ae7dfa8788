# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH server's configuration: refused values, overriding lines, and users that it shuts out."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import sshd

MAIN = "/etc/ssh/sshd_config"
OURS = "/etc/ssh/sshd_config.d/10-inference.conf"
INCLUDE = "Include /etc/ssh/sshd_config.d/*.conf\n"


class Files:
    """Configuration files, as a dictionary."""

    def __init__(self, **texts: str) -> None:
        self.texts = {MAIN: texts.pop("main", INCLUDE), OURS: texts.pop("ours", "PasswordAuthentication no\n")}
        self.texts |= {
            f"/etc/ssh/sshd_config.d/{name.replace('_', '-')[1:]}.conf": text for name, text in texts.items()
        }
        self.copies: dict[str, str] = {}

    def read(self, path: str) -> str:
        return self.texts[path]

    def glob(self, pattern: str) -> list[str]:
        return sorted(fnmatch.filter(self.texts, pattern))

    def culprit(self, keyword: str) -> str:
        return sshd.culprit(keyword, sshd.lines(MAIN, self.read, self.glob), OURS)

    def write(self, path: str, text: str) -> str:
        self.copies[f"/tmp/{len(self.copies)}"] = text
        return f"/tmp/{len(self.copies) - 1}"


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"PasswordAuthentication": True}, "common_ssh_password_authentication"),
        ({"permitrootlogin": "yes"}, "common_ssh_permit_root_login"),
        ({"Match": "User bob"}, "your own file"),
        ({"ChallengeResponseAuthentication": True}, "would also allow passwords"),
        ({"Banner x": "y"}, "not a keyword"),
        ({"MaxAuthTries": 3, "maxauthtries": 4}, "another name of MaxAuthTries"),
        ({"Banner": None}, "must be a value"),
        ({"AcceptEnv": []}, "must be a value"),
        ({"Banner": "none\nPermitRootLogin yes"}, "must be one line"),
        ({"AcceptEnv": ["A", {"b": 1}]}, "must be a value"),
    ],
)
def test_mistakes_are_found_without_sshd(declared: dict[str, Any], words: str) -> None:
    (problem,) = sshd.problems(declared, passwords=False)
    assert words in str(problem)


def test_kbdinteractive_is_allowed_where_passwords_are() -> None:
    assert sshd.problems({"KbdInteractiveAuthentication": False, "AcceptEnv": ["A", "B"]}, passwords=True) == []


def test_the_sites_values_replace_ours_whatever_the_case_of_the_keyword() -> None:
    merged = sshd.merge({"MaxAuthTries": 6, "StrictModes": True}, {"maxauthtries": 3, "AcceptEnv": ["A", "B"]})
    assert merged == {"StrictModes": True, "maxauthtries": 3, "AcceptEnv": ["A", "B"]}
    assert sshd.render(merged).splitlines()[2:] == ["StrictModes yes", "maxauthtries 3", "AcceptEnv A", "AcceptEnv B"]


def test_values_are_compared_as_sshd_writes_them() -> None:
    wanted = sshd.effective("passwordauthentication no\nport 22\nallowusers a\nmaxauthtries 6")
    found = sshd.effective("passwordauthentication yes\nport 2222\nallowusers a\nallowusers b\nmaxauthtries 6")
    keywords = ["PasswordAuthentication", "Port", "AllowUsers", "MaxAuthTries"]
    assert sshd.overridden(keywords, wanted, found) == {"passwordauthentication": ("no", "yes")}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (Files(_05_x="# theirs\nPasswordAuthentication yes"), "sshd_config.d/05-x.conf line 2"),
        (Files(main="passwordauthentication = yes\n" + INCLUDE), "/etc/ssh/sshd_config line 1"),
        (Files(main=INCLUDE + "Match User bob\n PasswordAuthentication yes"), "line 3 sets it for Match User bob"),
        (Files(_50_x="Match all\nPasswordAuthentication yes"), "SSHD_OPTS"),
        (Files(main=INCLUDE + "PasswordAuthentication yes"), "SSHD_OPTS"),
    ],
)
def test_the_line_that_overrides_our_value_is_found(files: Files, words: str) -> None:
    assert words in files.culprit("passwordauthentication")


def test_a_match_ends_with_its_file() -> None:
    files = Files(_05_x="Match User bob\nBanner none", main=INCLUDE + "Banner x")
    found = {(line.path, line.match) for line in sshd.lines(MAIN, files.read, files.glob)}
    assert found == {("/etc/ssh/sshd_config.d/05-x.conf", "User bob"), (OURS, ""), (MAIN, "")}


def test_an_include_in_the_copied_configuration_names_the_copied_files() -> None:
    files = Files(_05_x="Banner none", main="Port 22\n" + INCLUDE + "UsePAM yes")
    main = sshd.copied(MAIN, files.read, files.glob, files.write)
    assert files.copies[main] == "Port 22\nInclude /tmp/0 /tmp/1\nUsePAM yes\n"
    assert files.copies["/tmp/0"] == "Banner none\n"


def test_an_include_without_files_is_left_out_of_the_copy() -> None:
    files = Files(main="Include /nowhere/*.conf\nPort 22")
    assert files.copies[sshd.copied(MAIN, files.read, files.glob, files.write)] == "\nPort 22\n"


@pytest.mark.parametrize(
    ("values", "user", "reason"),
    [
        ("pubkeyauthentication no", "bob", "PubkeyAuthentication"),
        ("permitrootlogin no", "root", "PermitRootLogin is no"),
        ("permitrootlogin no", "bob", ""),
        ("permitrootlogin without-password", "root", ""),
        ("allowusers alice\nallowusers carol", "bob", "AllowUsers is alice carol"),
        ("allowusers b*", "bob", ""),
        ("allowusers bob@192.0.2.0/24", "bob", ""),
        ("allowusers bob@198.51.100.*", "bob", "AllowUsers"),
        ("allowusers bob@!198.51.100.0/24,*", "bob", ""),
        ("allowusers bob@198.51.100.*,192.0.2.*", "bob", ""),
        ("allowusers bob@!192.0.2.7,192.0.2.0/24", "bob", "AllowUsers"),
        ("allowusers bob@!198.51.100.7", "bob", "AllowUsers"),
        ("denyusers bob", "bob", "DenyUsers"),
        ("denyusers *@!198.51.100.0/24,*", "bob", "DenyUsers"),
        ("denyusers *@!192.0.2.0/24,*", "bob", ""),
        ("allowgroups ssh", "bob", "the user's groups are bob, adm"),
        ("allowgroups ad?", "bob", ""),
        ("denygroups adm", "bob", "DenyGroups"),
    ],
)
def test_a_user_is_shut_out_for_a_reason(values: str, user: str, reason: str) -> None:
    found = sshd.shut_out(sshd.effective(values), user, ["bob", "adm"], "192.0.2.7")
    assert reason in found
    assert bool(reason) == bool(found)


def test_an_unknown_address_matches_every_pattern() -> None:
    assert sshd.shut_out(sshd.effective("allowusers bob@198.51.100.*"), "bob", [], "") == ""


def test_an_include_with_an_unclosed_quote_is_named() -> None:
    with pytest.raises(
        sshd.SshdError, match=r"cannot read the line Include \"/etc/ssh/x.conf \(No closing quotation\)"
    ):
        sshd.included('"/etc/ssh/x.conf', lambda pattern: [pattern])
