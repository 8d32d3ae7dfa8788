# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids of users: by name and by number."""

from __future__ import annotations

import os
import pwd

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import users


def test_ids_are_found_by_name_and_by_number() -> None:
    me = pwd.getpwuid(os.getuid())
    assert users.ids(me.pw_name) == users.ids_or_root(me.pw_name) == (me.pw_uid, me.pw_gid)
    assert users.ids("5") == (5, 5) and users.ids("5:6") == (5, 6)


def test_a_missing_user_is_an_error_or_root() -> None:
    with pytest.raises(KeyError):
        users.ids("nobody-has-this")
    assert users.ids_or_root("nobody-has-this") == (0, 0)
