# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bcrypt hashes of passwords for Prometheus' web configuration. Private to the collection.

Uses the machine's libcrypt: Python on Debian 13 has no module for bcrypt, and libcrypt needs no further package. A hash
that still fits its password stays, so that a run without changes reports none.
"""

from __future__ import annotations

import ctypes
import re
import secrets
from collections.abc import Callable, Mapping

LIBRARY = "libcrypt.so.1"

PREFIX = "$2b$10$"
"""bcrypt with 2^10 rounds: 0.06 s for the first request of each user. Prometheus caches the result."""

ALPHABET = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
SALT_LETTERS = 22

USER = re.compile(r'^ {2}"(?P<name>[^"]+)": "(?P<hash>\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53})"$', re.MULTILINE)
"""A line that basic_auth_users() has written."""

Crypt = Callable[[str, str], str]


class CryptError(Exception):
    """This machine cannot hash passwords; the text is for the operator."""


def crypt(password: str, setting: str) -> str:
    """The hash of a password, with the salt of a setting or of an older hash. Raises CryptError."""
    try:
        function = ctypes.CDLL(LIBRARY).crypt
    except OSError as error:
        raise CryptError(f"{LIBRARY} cannot be loaded ({error}): install Debian's package libcrypt1") from error
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    made = function(password.encode(), setting.encode()) or b""
    # If libcrypt does not know bcrypt, the result begins with a star, or comes from an older method.
    if not made.startswith(PREFIX[:2].encode()):
        raise CryptError(f"{LIBRARY} does not know bcrypt: install Debian's package libcrypt1")
    return made.decode()


def salt() -> str:
    return PREFIX + "".join(secrets.choice(ALPHABET) for _letter in range(SALT_LETTERS))


def basic_auth_users(users: Mapping[str, str], before: str, hasher: Crypt = crypt) -> str:
    """The section with the users. Keeps each hash of the text `before` that still fits. Raises CryptError."""
    if not users:
        return ""
    known = {found["name"]: found["hash"] for found in USER.finditer(before)}
    lines = []
    for name, password in sorted(users.items()):
        old = known.get(name, "")
        kept = old if old and _fits(password, old, hasher) else hasher(password, salt())
        lines.append(f'  "{name}": "{kept}"\n')
    return "basic_auth_users:\n" + "".join(lines)


def _fits(password: str, old: str, hasher: Crypt) -> bool:
    """Whether a hash is of this password. False for a hash that libcrypt refuses, such as one edited by hand."""
    try:
        return hasher(password, old) == old
    except CryptError:
        return False
