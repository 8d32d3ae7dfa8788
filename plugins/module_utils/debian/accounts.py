# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admins of a node, as declared: understood, and every mistake found at once. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem
from .ssh_keys import KeyProblem, described, parse

HEADER = "Managed by Ansible, role baremetal.inference.common: changes made here are lost."

NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
"""A user's name. Source: useradd(8); no dot, with which sudo would pass over the file of its rule."""

SUDO = ("ALL=(ALL:ALL) NOPASSWD: ALL",)
"""What an admin may do where nothing is declared: it has no password that sudo could ask for."""

FIRST_UID = 1000
"""The first number that is a person's. Source: FIRST_UID in Debian's adduser.conf, Debian policy 9.2.2"""

LAST_UID = 59999
"""The last one: above lie Debian's own and `nobody`. Source: LAST_UID in Debian's adduser.conf, Debian policy 9.2.2"""


@dataclass(frozen=True)
class Admin:
    """One admin. None means: left as it is."""

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
        """The content of the rule's file, empty for none."""
        rules = "".join(f"{self.name} {rule}\n" for rule in self.sudo)
        return f"# {HEADER}\n{rules}" if rules else ""


def understand(
    declared: Sequence[Mapping[str, Any]],
    users: Mapping[str, int],
    groups: Mapping[str, int],
    service_user: str,
    connected: str,
) -> tuple[list[Admin], list[Problem]]:
    """The admins, and everything that is wrong with them; a key's own text is never repeated.

    `users` and `groups` are what the node has, with their numbers; `connected` is who has logged in for this run.
    """
    admins: list[Admin] = []
    found: list[Problem] = []
    for number, entry in enumerate(declared):
        name = str(entry["name"])
        where = f"common_admins[{number}] {name}"
        present = entry.get("state") != "absent"
        found += _name_problems(where, name, present, users, groups, service_user, connected)
        if name in [admin.name for admin in admins]:
            found.append(Problem(where, "is declared twice", "name"))
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
        return [Problem(where, "must be 1 to 32 of a-z, 0-9, _ and -, and begin with a letter or _", "name")]
    if name == "root":
        message = "root is there anyhow: see common_ssh_permit_root_login; its keys stay as they are"
        return [Problem(where, message, "name")]
    if name == service_user:
        return [Problem(where, "is common_user, which engines run as and which has no log-in", "name")]
    if not FIRST_UID <= users.get(name, FIRST_UID) <= LAST_UID:
        return [Problem(where, f"is a user of the system (number {users[name]}): choose another name", "name")]
    if present and name not in users and groups.get(name, FIRST_UID) < FIRST_UID:
        return [Problem(where, f"is a group of the system (number {groups[name]}): choose another name", "name")]
    if not present and name == connected:
        message = "is the user of this very connection: connect as another admin to remove it"
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
        message = "must hold at least one public key, to log in with; state: absent removes an admin"
        found.append(Problem(where, message, "keys"))
    return found


def _sudo_problems(where: str, sudo: Iterable[str]) -> list[Problem]:
    message = "must be one line, as ALL=(ALL:ALL) NOPASSWD: ALL, without the user's name"
    return [Problem(where, message, "sudo", rule) for rule in sudo if not rule or len(rule.splitlines()) != 1]


def _group_problems(where: str, groups: Iterable[str]) -> list[Problem]:
    return [Problem(where, "is not a group's name", "groups", group) for group in groups if not NAME.fullmatch(group)]


def changed_lines(before: str, after: str) -> dict[str, str]:
    """authorized_keys before and after for people, by the keys' fingerprints."""
    return {"before": _shown(before), "after": _shown(after)}


def _shown(text: str) -> str:
    return "".join(f"{line}\n" for line in described(text))
