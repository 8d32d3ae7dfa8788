# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the SSH server's configuration, and finds overriding files and locked-out users. Private to the collection.

Pure: the caller passes functions that read files. The module ``ssh_server`` reads the effective values from sshd.
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
"""The directory of relative names in Include. Source: sshd_config(5), Include"""

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
    "include": "is not allowed here: put your own file into /etc/ssh/sshd_config.d",
    "match": "is not allowed here: put your own file into /etc/ssh/sshd_config.d",
}
"""Keywords that common_ssh_config must not have, with what to do instead."""

KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")

LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+)(.*?)\s*$")

NOT_COMPARED = frozenset({"port", "listenaddress", "hostkey"})
"""Keywords whose values from all files are combined, and to which sshd adds values of its own."""

NOT_INCLUDED = (
    f"no file includes this one: begin {DIRECTORY}/sshd_config with the line Include {DIRECTORY}/sshd_config.d/*.conf"
)

DEPTH = 16
"""The largest depth of nested includes. Source: SERVCONF_MAX_DEPTH in OpenSSH's servconf.c"""


@dataclass(frozen=True)
class Line:
    """A setting in a file: its place, and the condition of its Match block; empty if it applies to all users."""

    path: str
    number: int
    keyword: str
    value: str
    match: str = ""


class SshdError(Exception):
    """The server cannot be configured as declared. The message says what to do."""


def plain(keyword: str) -> str:
    """A keyword in the form that sshd prints."""
    return ALIASES.get(keyword.lower(), keyword.lower())


def problems(declared: Mapping[str, Any], passwords: bool) -> list[Problem]:
    """Problems with common_ssh_config that can be found without sshd. `passwords`: whether passwords are allowed."""
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
            message = "would also allow passwords: set common_ssh_password_authentication instead"
            found.append(Problem(where, message, str(keyword)))
        elif name in seen:
            found.append(Problem(where, f"is another name of {seen[name]}: remove one of them", str(keyword)))
        seen.setdefault(name, str(keyword))
        items = value if isinstance(value, list) else [value]
        if not items or any(isinstance(item, dict | list) or not _text(item).strip() for item in items):
            found.append(Problem(where, "must be a value, or a list of values for several lines", str(keyword), value))
        elif any("\n" in _text(item) or "\r" in _text(item) for item in items):
            found.append(Problem(where, "must be one line: use a list for several lines", str(keyword), value))
    return found


def merge(base: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The role's values, overridden by the site's. Upper and lower case of keywords do not matter."""
    own = {plain(keyword) for keyword in declared}
    return {**{keyword: value for keyword, value in base.items() if plain(keyword) not in own}, **declared}


def render(settings: Mapping[str, Any]) -> str:
    """The text of our file."""
    lines = [f"# {HEADER}", "# sshd uses the first value that it finds: this file precedes other files."]
    for keyword, value in settings.items():
        lines += [f"{keyword} {_text(item)}" for item in (value if isinstance(value, list) else [value])]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    """A value in sshd's form."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value if value is not None else "")


# --- what is in effect


def effective(output: str) -> dict[str, set[str]]:
    """Parse the output of ``sshd -T``: the values by keyword."""
    found: dict[str, set[str]] = {}
    for line in output.splitlines():
        keyword, _blank, value = line.strip().partition(" ")
        found.setdefault(plain(keyword), set()).add(value)
    return found


def overridden(
    keywords: Iterable[str], wanted: Mapping[str, set[str]], found: Mapping[str, set[str]]
) -> dict[str, tuple[str, str]]:
    """Keywords whose value is not in effect, with the wanted and the effective value.

    `wanted` has the values that sshd prints for our file alone, so that both have the same form.
    """
    names = sorted({plain(keyword) for keyword in keywords} - NOT_COMPARED)
    return {
        name: (", ".join(sorted(wanted.get(name, ()))), ", ".join(sorted(found.get(name, ()))) or "nothing")
        for name in names
        if not wanted.get(name, set()) <= found.get(name, set())
    }


def lines(path: str, read: Callable[[str], str], glob: Callable[[str], list[str]], depth: int = 0) -> Iterator[Line]:
    """All settings of a configuration file and of the files that it includes, in sshd's order."""
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
    """The files that an Include names. Raises SshdError for an unclosed quote."""
    try:
        patterns = shlex.split(value, comments=True)
    except ValueError as error:
        raise SshdError(f"sshd cannot read the line Include {value} ({error}): correct this line") from error
    return [name for pattern in patterns for name in glob(str(PurePosixPath(DIRECTORY, pattern)))]


def copied(
    path: str,
    read: Callable[[str], str],
    glob: Callable[[str], list[str]],
    write: Callable[[str, str], str],
    depth: int = 0,
) -> str:
    """Copy a configuration with all included files, so that sshd can check it before it is in place.

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
    """The line that overrides our value of a keyword, as text for an operator."""
    every = list(every)
    own = next((index for index, line in enumerate(every) if line.path == ours), 0)
    for index, line in enumerate(every):
        if line.keyword == keyword and line.path != ours and (index < own or line.match):
            condition = f" for Match {line.match}" if line.match else ""
            return f"because {line.path} line {line.number} sets it{condition}: remove that line"
    return "because SSHD_OPTS in /etc/default/ssh, or sshd itself, sets it"


# --- which users can log in


def shut_out(values: Mapping[str, set[str]], user: str, groups: Iterable[str], address: str) -> str:
    """Why a user with a key could not log in; empty if the user can. The lists are checked in sshd's order.

    Source: allowed_user() in OpenSSH's auth.c
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
    """Whether an item of AllowUsers or DenyUsers matches a user. An unknown address matches every item."""
    name, _at, host = pattern.partition("@")
    return fnmatch.fnmatchcase(user, name) and (not host or not address or _is_host(host, address))


def _is_host(patterns: str, address: str) -> bool:
    """Whether a list of patterns, with commas between them, matches an address. It does not match if a pattern with an
    exclamation mark does.

    Source: match_host_and_ip() in OpenSSH's match.c. Names of users and groups have no such patterns.
    """
    listed = patterns.split(",")
    refused = (pattern.removeprefix("!") for pattern in listed if pattern.startswith("!"))
    return not any(_fits(pattern, address) for pattern in refused) and any(
        _fits(pattern, address) for pattern in listed if not pattern.startswith("!")
    )


def _fits(pattern: str, address: str) -> bool:
    """Whether a single pattern, an address or a network, matches an address."""
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return fnmatch.fnmatchcase(address.lower(), pattern.lower())


def _in_groups(pattern: str, groups: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(group, pattern) for group in groups)


def passwords_work(values: Mapping[str, set[str]]) -> bool:
    """Whether users can log in with a password."""
    return values.get("passwordauthentication") == {"yes"} or values.get("kbdinteractiveauthentication") == {"yes"}
