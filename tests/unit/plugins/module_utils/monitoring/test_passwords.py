# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords as bcrypt hashes, by the machine's own library."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import passwords
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.passwords import (
    CryptError,
    basic_auth_users,
    crypt,
    salt,
)


def test_a_hash_is_bcrypt_and_fits_only_its_password() -> None:
    made = crypt("long-enough", salt())
    assert made.startswith("$2b$10$") and len(made) == 60
    assert crypt("long-enough", made) == made
    assert crypt("another-one", made) != made


# Source: John the Ripper's test vectors for bcrypt, as crypt_blowfish has them.
def test_the_hash_of_a_published_test_vector_is_equal() -> None:
    assert (
        crypt("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.") == "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
    )


def test_a_hash_that_still_fits_stays() -> None:
    first = basic_auth_users({"a": "password-a", "b": "password-b"}, "")
    assert basic_auth_users({"a": "password-a", "b": "password-b"}, first) == first
    second = basic_auth_users({"a": "password-a", "b": "changed-one"}, first)
    assert second.splitlines()[:2] == first.splitlines()[:2]
    assert second.splitlines()[2] != first.splitlines()[2]


def test_a_hash_that_libcrypt_refuses_is_replaced() -> None:
    first = basic_auth_users({"a": "password-a"}, "")
    edited = first.replace("$2b$10$", "$2b$99$")
    second = basic_auth_users({"a": "password-a"}, edited)
    assert second not in (first, edited) and basic_auth_users({"a": "password-a"}, second) == second


def test_without_users_there_is_no_section_basic_auth_users() -> None:
    assert basic_auth_users({}, "basic_auth_users:\n") == ""


def test_a_machine_without_libcrypt_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "LIBRARY", "libnothing.so.9")
    with pytest.raises(CryptError, match="libcrypt1"):
        crypt("long-enough", salt())
