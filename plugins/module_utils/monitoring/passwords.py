# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords as Prometheus' web configuration has them: bcrypt. Private to the collection.

By the machine's own libcrypt: Debian 13's Python has no module for it any more, and no package need be installed. A
hash that a password still fits is kept, so that a run that changes nothing changes nothing.
"""

from __future__ import annotations

import ctypes
import re
import secrets
from collections.abc import Callable, Mapping

LIBRARY = "libcrypt.so.1"

PREFIX = "$2b$10$"
"""bcrypt with 2^10 rounds: 0.06 s for each first request of a user; Prometheus remembers who came in."""

ALPHABET = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
SALT_LETTERS = 22

USER = re.compile(r'^ {2}"(?P<name>[^"]+)": "(?P<hash>\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53})"$', re.MULTILINE)
"""A line that basic_auth_users() has written."""

Crypt = Callable[[str, str], str]


class CryptError(Exception):
    """The machine cannot hash; the text is for the operator."""


def crypt(password: str, setting: str) -> str:
    """The hash of a password, by a setting or an older hash. Raises CryptError."""
    try:
        function = ctypes.CDLL(LIBRARY).crypt
    except OSError as error:
        raise CryptError(f"{LIBRARY} cannot be loaded ({error}): install Debian's package libcrypt1") from error
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    made = function(password.encode(), setting.encode()) or b""
    # What it does not know, it answers with a text that begins with a star, or by an older method.
    if not made.startswith(PREFIX[:2].encode()):
        raise CryptError(f"{LIBRARY} does not know bcrypt: install Debian's package libcrypt1")
    return made.decode()


def salt() -> str:
    return PREFIX + "".join(secrets.choice(ALPHABET) for _letter in range(SALT_LETTERS))


def basic_auth_users(users: Mapping[str, str], before: str, hasher: Crypt = crypt) -> str:
    """The section of the users, with each hash of an older text that still fits. Raises CryptError."""
    if not users:
        return ""
    known = {found["name"]: found["hash"] for found in USER.finditer(before)}
    lines = []
    for name, password in sorted(users.items()):
        old = known.get(name, "")
        kept = old if old and hasher(password, old) == old else hasher(password, salt())
        lines.append(f'  "{name}": "{kept}"\n')
    return "basic_auth_users:\n" + "".join(lines)
