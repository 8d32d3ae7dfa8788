# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the backup: what is written is read again, and every mistake is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import Settings, problems

GOOD = Settings("/srv/x", "n1", ("/etc/inference",), ("/etc/inference/tmp",), {"daily": 7}, intervals={"backup": 9})


def test_settings_that_were_written_are_read_again() -> None:
    value = GOOD.to_json()
    assert value["schema"] == 1 and Settings.from_json(value) == GOOD
    assert Settings.from_json({**value, "of a later version": 1, "paths": list(GOOD.paths)}) == GOOD


@pytest.mark.parametrize("value", [None, [], {"schema": 2}, {}])
def test_settings_of_another_schema_are_an_error(value: object) -> None:
    with pytest.raises(ValueError, match="are missing, or not of schema 1"):
        Settings.from_json(value)


def test_settings_without_a_required_key_are_an_error() -> None:
    value = {key: value for key, value in GOOD.to_json().items() if key not in ("host", "paths")}
    with pytest.raises(ValueError, match="settings have no host and no paths"):
        Settings.from_json(value)


def test_good_settings_have_no_problem() -> None:
    assert problems(GOOD, {}, password="a-long-password") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repository": ""}, "backup_repository is not set"),
        ({"repository": "b2:x"}, "backup_repository: "),
        ({"host": " "}, "backup_host is empty"),
        ({"paths": ("etc",)}, "backup_paths: 'etc' is not allowed: use an absolute path"),
        ({"paths": ("/*",)}, "backup_paths: '/*' is not allowed"),
        ({"exclude": ("/a/../b",)}, "backup_exclude: '/a/../b' is not allowed"),
        ({"keep": {}}, "backup_keep is empty"),
        ({"keep": {"often": 1}}, "'often' is not a known key: use last"),
        ({"keep": {"daily": 0}}, "daily is 0: it must be a whole number of 1 or more"),
        ({"keep": {"daily": True}}, "daily is True: it must be"),
        ({"check_subset": "half"}, "backup_check_subset is 'half'"),
        ({"check_subset": "5%\n"}, "backup_check_subset is '5%\\n'"),
        ({"ca_file": "ca.pem"}, "backup_ca_file is 'ca.pem'"),
        ({"max_mib": 0}, "backup_max_mib is 0"),
        ({"lock_minutes": 0}, "backup_lock_minutes is 0"),
    ],
)
def test_each_mistake_is_named(changes: dict[str, object], words: str) -> None:
    (found,) = problems(replace(GOOD, **changes), {}, password="a-long-password")  # type: ignore[arg-type]  # any field
    assert words in found


def test_all_mistakes_are_named_at_once() -> None:
    found = problems(replace(GOOD, repository="b2:x", host=" ", paths=("/",)), {"A-B": "x"}, password="")
    for words in ("b2:x", "backup_password", "backup_host", "'/'", "A-B"):
        assert any(words in problem for problem in found), words


def test_a_password_must_have_one_line() -> None:
    assert "backup_password is not set" in problems(GOOD, {}, password="")[0]
    (found,) = problems(GOOD, {}, password="very\nsecret")
    assert found == "backup_password has several lines: it must have one"


def test_the_setting_append_only_needs_a_server_that_can_refuse_deletions() -> None:
    rest = replace(GOOD, repository="rest:https://store:8000/n1", append_only=True)
    assert problems(rest, {}, password="a-long-password") == []
    for address in ("/srv/x", "sftp:me@store:/srv/x"):
        (found,) = problems(replace(rest, repository=address), {}, password="a-long-password")
        assert f"backup_repository is '{address}': only the server of a rest: or s3: repository" in found
    s3 = replace(rest, repository="s3:https://store/fleet/n1")
    key = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert problems(s3, key, password="a-long-password") == []
    (found,) = problems(s3, {"AWS_PROFILE": "x"}, password="a-long-password")
    assert "backup_environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in found
