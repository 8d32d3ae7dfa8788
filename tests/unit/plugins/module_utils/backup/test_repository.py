# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import repository


@pytest.mark.parametrize(
    ("address", "kind", "host", "user", "port"),
    [
        ("/srv/backup", "directory", "", "", None),
        ("sftp:me@store:/srv/x", "sftp", "store", "me", None),
        ("sftp:store:x", "sftp", "store", "", None),
        ("sftp://me@store:2222//srv/x", "sftp", "store", "me", 2222),
        ("s3:https://s3.example.com:9000/bucket/x", "s3", "s3.example.com", "", 9000),
        ("s3:s3.example.com/bucket", "s3", "s3.example.com", "", None),
        ("rest:https://store:8000/x/", "rest", "store", "", 8000),
    ],
)
def test_an_address_is_parsed(address: str, kind: str, host: str, user: str, port: int | None) -> None:
    assert repository.parse(address) == repository.Repository(kind, address, host, user, port)


@pytest.mark.parametrize(
    "address",
    ["", "srv/backup", "sftp:store", "s3:https://host", "rest:store", "b2:bucket", "rest:https://a:secret@h/x"],
)
def test_an_address_that_restic_cannot_use_is_refused(address: str) -> None:
    with pytest.raises(ValueError) as refused:
        repository.parse(address)
    assert "secret" not in str(refused.value)


def test_an_address_that_cannot_be_read_is_not_shown() -> None:
    for address in ("rest:https://node:s3cret/word@store:8000/x", "s3:https://[s3cret/bucket"):
        with pytest.raises(ValueError, match="has a host or a port that cannot be read: use a form like") as refused:
            repository.parse(address)
        assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("password", ["s3cret/word", "12/s3cret", "s3cret@word", "s3cret"])
def test_a_password_with_any_characters_is_masked(password: str) -> None:
    assert repository.mask(f"rest:https://node:{password}@store:8000/x") == "rest:https://node:***@store:8000/x"


@pytest.mark.parametrize("address", ["sftp://me@store:2222//srv/@x", "rest:https://store:8000/x/", "sftp:me@store:/x"])
def test_an_address_without_a_password_stays_as_it_is(address: str) -> None:
    assert repository.mask(address) == address


def test_credentials_of_rest_are_put_into_the_address_for_restic() -> None:
    given = repository.parse("rest:https://store:8000/x")
    credentials = {"RESTIC_REST_USERNAME": "n1", "RESTIC_REST_PASSWORD": "a/b@c"}
    assert repository.for_restic(given, credentials) == "rest:https://n1:a%2Fb%40c@store:8000/x"
    assert repository.for_restic(given, {}) == given.address
    assert repository.mask(repository.for_restic(given, credentials)) == "rest:https://n1:***@store:8000/x"


def test_ssh_asks_no_question_and_checks_the_host_key() -> None:
    command = repository.ssh_command(repository.parse("sftp://me@store:2222//x"), "/etc/key", "/etc/known hosts")
    for part in ("BatchMode=yes", "StrictHostKeyChecking=yes", "-p 2222", "-l me", "-i /etc/key", "store -s sftp"):
        assert part in command
    assert "'UserKnownHostsFile=/etc/known hosts'" in command


def test_mistakes_of_the_environment_are_reported_without_values() -> None:
    found = repository.environment_problems({"A-B": "s3cret", "RESTIC_PASSWORD": "s3cret", "X": "s3cret\nY"})
    assert len(found) == 3 and "s3cret" not in str(found)
    (found_name,) = repository.environment_problems({"AWS_REGION\n": "x"})
    assert found_name.startswith("backup_environment: 'AWS_REGION\\n' is not a variable name")
    found = repository.environment_problems({"RESTIC_REST_PASSWORD": "change-me-71"}, "backup_environment")
    assert len(found) == 1 and found[0].startswith("backup_environment.RESTIC_REST_PASSWORD is a placeholder: set")
