# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH server's configuration: our part, what other files set, and which users are shut out. Private to the
collection.

Pure: files are read by functions that are passed in. The module ``ssh_server`` asks sshd itself for the values that are
in effect.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..core.problems import Problem

HEADER = "Managed by Ansible, role baremetal.inference.common: changes made here are lost."

DIRECTORY = "/etc/ssh"
"""Where relative names of Include are looked up. Source: sshd_config(5), Include"""

ALIASES: Mapping[str, str] = {
    "challengeresponseauthentication": "kbdinteractiveauthentication",
    "skeyauthentication": "kbdinteractiveauthentication",
    "pubkeyacceptedkeytypes": "pubkeyacceptedalgorithms",
    "hostbasedacceptedkeytypes": "hostbasedacceptedalgorithms",
}
"""Older names of keywords. Source: the table of keywords in OpenSSH's servconf.c"""

OWN_VARIABLE: Mapping[str, str] = {
    "passwordauthentication": "is set by common_ssh_password_authentication",
    "permitrootlogin": "is set by common_ssh_permit_root_login",
    "include": "has no place here: put a file of your own into /etc/ssh/sshd_config.d",
    "match": "has no place here: put a file of your own into /etc/ssh/sshd_config.d",
}
"""Keywords that stand for more than one value, with what to do instead."""

KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")

LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+)(.*?)\s*$")

NOT_COMPARED = frozenset({"port", "listenaddress", "hostkey"})
"""Keywords that add up over all files, and to which sshd adds values that no file has."""

NOT_INCLUDED = (
    f"nothing includes this file: begin {DIRECTORY}/sshd_config with the line Include {DIRECTORY}/sshd_config.d/*.conf"
)

DEPTH = 16
"""How deep files may include each other. Source: SERVCONF_MAX_DEPTH in OpenSSH's servconf.c"""


@dataclass(frozen=True)
class Line:
    """A line that says something: where it stands, and within which Match (empty: for everybody)."""

    path: str
    number: int
    keyword: str
    value: str
    match: str = ""


class SshdError(Exception):
    """A server that cannot be configured as declared; the text is for the operator."""


def plain(keyword: str) -> str:
    """A keyword as sshd prints it."""
    return ALIASES.get(keyword.lower(), keyword.lower())


def problems(declared: Mapping[str, Any], passwords: bool) -> list[Problem]:
    """What cannot be right in common_ssh_config, as far as it can be told without sshd."""
    found = []
    seen: dict[str, str] = {}
    for keyword, value in declared.items():
        name = plain(str(keyword))
        where = "common_ssh_config"
        if not KEYWORD.fullmatch(str(keyword)):
            found.append(Problem(where, "is not a keyword of sshd_config(5)", str(keyword)))
        elif name in OWN_VARIABLE:
            found.append(Problem(where, OWN_VARIABLE[name], str(keyword)))
        elif name == "kbdinteractiveauthentication" and not passwords:
            message = "would let passwords in by another way: set common_ssh_password_authentication"
            found.append(Problem(where, message, str(keyword)))
        elif name in seen:
            found.append(Problem(where, f"says the same as {seen[name]}", str(keyword)))
        seen.setdefault(name, str(keyword))
        items = value if isinstance(value, list) else [value]
        if not items or any(isinstance(item, dict | list) or not _text(item).strip() for item in items):
            found.append(Problem(where, "must be a value, or a list of values for several lines", str(keyword), value))
        elif any("\n" in _text(item) or "\r" in _text(item) for item in items):
            found.append(Problem(where, "must be one line; a list makes several lines", str(keyword), value))
    return found


def merge(base: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Our values with the site's in their place, whatever the case of their keywords."""
    own = {plain(keyword) for keyword in declared}
    return {**{keyword: value for keyword, value in base.items() if plain(keyword) not in own}, **declared}


def render(settings: Mapping[str, Any]) -> str:
    """The text of our file."""
    lines = [f"# {HEADER}", "# sshd takes the first value that it finds: this file comes before those of others."]
    for keyword, value in settings.items():
        lines += [f"{keyword} {_text(item)}" for item in (value if isinstance(value, list) else [value])]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    """A value as sshd writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value if value is not None else "")


# --- what is in effect


def effective(output: str) -> dict[str, set[str]]:
    """The values that ``sshd -T`` prints, by keyword."""
    found: dict[str, set[str]] = {}
    for line in output.splitlines():
        keyword, _blank, value = line.strip().partition(" ")
        found.setdefault(plain(keyword), set()).add(value)
    return found


def overridden(
    keywords: Iterable[str], wanted: Mapping[str, set[str]], found: Mapping[str, set[str]]
) -> dict[str, tuple[str, str]]:
    """Keywords whose value is not in effect, with the wanted and the found value.

    `wanted` is what sshd makes of our file alone, so that both are written in the same way.
    """
    names = sorted({plain(keyword) for keyword in keywords} - NOT_COMPARED)
    return {
        name: (", ".join(sorted(wanted.get(name, ()))), ", ".join(sorted(found.get(name, ()))) or "nothing")
        for name in names
        if not wanted.get(name, set()) <= found.get(name, set())
    }


def lines(path: str, read: Callable[[str], str], glob: Callable[[str], list[str]], depth: int = 0) -> Iterator[Line]:
    """Everything that a configuration file and those that it includes say, in sshd's order."""
    match = ""
    for number, text in enumerate(read(path).splitlines(), 1):
        parsed = LINE.match(text)
        if not parsed:
            continue
        keyword, value = parsed[1].lower(), parsed[2]
        if keyword == "match":
            match = "" if value.lower() == "all" else value
        elif keyword == "include" and depth < DEPTH:
            for name in included(value, glob):
                for line in lines(name, read, glob, depth + 1):
                    inner = " and ".join(part for part in (match, line.match) if part)
                    yield Line(line.path, line.number, line.keyword, line.value, inner)
        else:
            yield Line(path, number, plain(keyword), value, match)


def included(value: str, glob: Callable[[str], list[str]]) -> list[str]:
    """The files that an Include names."""
    patterns = shlex.split(value, comments=True)
    return [name for pattern in patterns for name in glob(str(PurePosixPath(DIRECTORY, pattern)))]


def copied(
    path: str,
    read: Callable[[str], str],
    glob: Callable[[str], list[str]],
    write: Callable[[str, str], str],
    depth: int = 0,
) -> str:
    """Copy a configuration with all that it includes, so that sshd can judge what is not in place yet.

    `write` takes the name and the text of a file, and returns the name of the copy.
    """
    texts = []
    for text in read(path).splitlines():
        parsed = LINE.match(text)
        if parsed and parsed[1].lower() == "include" and depth < DEPTH:
            copies = [copied(name, read, glob, write, depth + 1) for name in included(parsed[2], glob)]
            text = f"Include {' '.join(copies)}" if copies else ""
        texts.append(text)
    return write(path, "\n".join(texts) + "\n")


def culprit(keyword: str, every: Iterable[Line], ours: str) -> str:
    """Who has set a keyword so that our value is not in effect, for people."""
    every = list(every)
    own = next((index for index, line in enumerate(every) if line.path == ours), 0)
    for index, line in enumerate(every):
        if line.keyword == keyword and line.path != ours and (index < own or line.match):
            condition = f" for Match {line.match}" if line.match else ""
            return f"because {line.path} line {line.number} says so{condition}: remove that line"
    return "because SSHD_OPTS in /etc/default/ssh, or sshd itself, says so"


# --- who gets in


def shut_out(values: Mapping[str, set[str]], user: str, groups: Iterable[str], address: str) -> str:
    """Why a user with a key cannot log in any more, empty where nothing speaks against it.

    In sshd's order. Source: allowed_user() in OpenSSH's auth.c
    """
    groups = list(groups)
    named = {keyword: " ".join(sorted(values.get(keyword, ()))).split() for keyword in _USER_LISTS}
    if values.get("pubkeyauthentication") == {"no"}:
        return "PubkeyAuthentication is no"
    if user == "root" and values.get("permitrootlogin", set()) & {"no", "forced-commands-only"}:
        return f"PermitRootLogin is {', '.join(values['permitrootlogin'])}"
    if any(_is_user(pattern, user, address) for pattern in named["denyusers"]):
        return f"DenyUsers is {' '.join(named['denyusers'])}"
    if named["allowusers"] and not any(_is_user(pattern, user, address) for pattern in named["allowusers"]):
        return f"AllowUsers is {' '.join(named['allowusers'])}"
    if any(_in_groups(pattern, groups) for pattern in named["denygroups"]):
        return f"DenyGroups is {' '.join(named['denygroups'])}"
    if named["allowgroups"] and not any(_in_groups(pattern, groups) for pattern in named["allowgroups"]):
        return (
            f"AllowGroups is {' '.join(named['allowgroups'])}, and the user's groups are {', '.join(groups) or 'none'}"
        )
    return ""


_USER_LISTS = ("denyusers", "allowusers", "denygroups", "allowgroups")


def _is_user(pattern: str, user: str, address: str) -> bool:
    """Whether a pattern of AllowUsers means a user. An address that is not known is taken to fit."""
    name, _at, host = pattern.partition("@")
    return fnmatch.fnmatchcase(user, name) and (not host or not address or _is_host(host, address))


def _is_host(pattern: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return fnmatch.fnmatchcase(address.lower(), pattern.lower())


def _in_groups(pattern: str, groups: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(group, pattern) for group in groups)


def passwords_work(values: Mapping[str, set[str]]) -> bool:
    """Whether log-ins by password work."""
    return values.get("passwordauthentication") == {"yes"} or values.get("kbdinteractiveauthentication") == {"yes"}
