# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses the declared admins of a node, and finds all mistakes at once. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem
from .ssh_keys import KeyProblem, described, parse

HEADER = "Managed by Ansible, role baremetal.inference.common: changes made here are lost."

NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
"""A user's name. Source: useradd(8). No dot: sudo ignores a file whose name has one."""

SUDO = ("ALL=(ALL:ALL) NOPASSWD: ALL",)
"""The default sudo rules. NOPASSWD, because an admin has no password."""

FIRST_UID = 1000
"""The lowest user id of a person. Source: FIRST_UID in Debian's adduser.conf, Debian policy 9.2.2"""

LAST_UID = 59999
"""The highest user id of a person. Source: LAST_UID in Debian's adduser.conf, Debian policy 9.2.2"""


@dataclass(frozen=True)
class Admin:
    """An admin. None means that the value on the node stays."""

    name: str
    present: bool
    keys: tuple[str, ...]
    sudo: tuple[str, ...]
    groups: tuple[str, ...] | None
    shell: str | None

    @property
    def keys_text(self) -> str:
        """The content of authorized_keys."""
        return "".join(f"{line}\n" for line in (f"# {HEADER}", *self.keys))

    @property
    def sudo_text(self) -> str:
        """The content of the file with the sudo rules; empty without rules."""
        rules = "".join(f"{self.name} {rule}\n" for rule in self.sudo)
        return f"# {HEADER}\n{rules}" if rules else ""


def understand(
    declared: Sequence[Mapping[str, Any]],
    users: Mapping[str, int],
    groups: Mapping[str, int],
    service_user: str,
    connected: str,
) -> tuple[list[Admin], list[Problem]]:
    """The admins, and all problems with them. No message contains the text of a key.

    `users` and `groups` are those of the node, with their numbers. `connected` is the user of this run's connection.
    """
    admins: list[Admin] = []
    found: list[Problem] = []
    for number, entry in enumerate(declared):
        name = str(entry["name"])
        where = f"common_admins[{number}] {name}"
        present = entry.get("state") != "absent"
        found += _name_problems(where, name, present, users, groups, service_user, connected)
        if name in [admin.name for admin in admins]:
            found.append(Problem(where, "is declared twice: remove one of the entries", "name"))
        keys = tuple(dict.fromkeys(str(key).strip() for key in entry.get("keys") or ()))
        sudo = SUDO if entry.get("sudo") is None else tuple(str(rule).strip() for rule in entry["sudo"])
        wanted = entry.get("groups")
        if present:
            found += _key_problems(where, keys) + _sudo_problems(where, sudo) + _group_problems(where, wanted or ())
        admins.append(
            Admin(name, present, keys, sudo, None if wanted is None else tuple(sorted(set(wanted))), entry.get("shell"))
        )
    return admins, found


def _name_problems(
    where: str,
    name: str,
    present: bool,
    users: Mapping[str, int],
    groups: Mapping[str, int],
    service_user: str,
    connected: str,
) -> list[Problem]:
    if not NAME.fullmatch(name):
        return [Problem(where, "must be 1 to 32 of a-z, 0-9, _ and -, beginning with a letter or _", "name")]
    if name == "root":
        message = "root cannot be an admin: the role leaves root's keys as they are. See common_ssh_permit_root_login"
        return [Problem(where, message, "name")]
    if name == service_user:
        return [Problem(where, "is common_user, which engines run as: choose another name", "name")]
    if not FIRST_UID <= users.get(name, FIRST_UID) <= LAST_UID:
        return [Problem(where, f"is a system user (number {users[name]}): choose another name", "name")]
    if present and name not in users and groups.get(name, FIRST_UID) < FIRST_UID:
        return [Problem(where, f"is a system group (number {groups[name]}): choose another name", "name")]
    if not present and name == connected:
        message = "is the user of this connection, and cannot be removed: connect as another admin"
        return [Problem(where, message, "state", "absent")]
    return []


def _key_problems(where: str, keys: Iterable[str]) -> list[Problem]:
    found = []
    for number, key in enumerate(keys):
        try:
            parse(key)
        except KeyProblem as error:
            found.append(Problem(where, str(error), f"keys[{number}]"))
    if not keys:
        message = "must have at least one public key. To remove the admin, set state: absent"
        found.append(Problem(where, message, "keys"))
    return found


def _sudo_problems(where: str, sudo: Iterable[str]) -> list[Problem]:
    message = "must be one line, as ALL=(ALL:ALL) NOPASSWD: ALL, without the user's name"
    return [Problem(where, message, "sudo", rule) for rule in sudo if not rule or len(rule.splitlines()) != 1]


def _group_problems(where: str, groups: Iterable[str]) -> list[Problem]:
    message = "must be the name of a group: 1 to 32 of a-z, 0-9, _ and -, beginning with a letter or _"
    return [Problem(where, message, "groups", group) for group in groups if not NAME.fullmatch(group)]


def changed_lines(before: str, after: str) -> dict[str, str]:
    """The diff of authorized_keys, with fingerprints in place of keys."""
    return {"before": _shown(before), "after": _shown(after)}


def _shown(text: str) -> str:
    return "".join(f"{line}\n" for line in described(text))
