# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids of the node's users. Private to the collection."""

from __future__ import annotations

import pwd


def ids(user: str) -> tuple[int, int]:
    """The ids of a user and its group, by name, UID or UID:GID. Raises KeyError for a name that the node does not
    have."""
    if user[:1].isdigit():
        uid, _colon, gid = user.partition(":")
        return int(uid), int(gid or uid)
    found = pwd.getpwnam(user)
    return found.pw_uid, found.pw_gid


def ids_or_root(user: str) -> tuple[int, int]:
    """Like ids, but root for a missing user, which the check of users reports: no process of the user runs yet."""
    try:
        return ids(user)
    except KeyError:
        return 0, 0
