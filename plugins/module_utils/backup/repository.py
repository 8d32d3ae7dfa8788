# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of backup repositories, in restic's notation. Private to the collection; pure.

Source of the forms: restic's manual, "Preparing a new repository".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ..core.secrets import placeholders

DIRECTORY, SFTP, S3, REST = "directory", "sftp", "s3", "rest"

_FORMS = (
    "/srv/backup, sftp:user@host:/srv/backup, sftp://user@host:2222//srv/backup, s3:https://host/bucket or"
    " rest:https://host:8000/path"
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

REST_USER, REST_SECRET = "RESTIC_REST_USERNAME", "RESTIC_REST_PASSWORD"

OURS = frozenset({"RESTIC_REPOSITORY", "RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"})
"""Variables of restic that backup_environment must not set: address and password have their own options."""


@dataclass(frozen=True)
class Repository:
    """A repository's address and its parts."""

    kind: str
    address: str
    host: str = ""
    user: str = ""
    port: int | None = None


def parse(address: str) -> Repository:
    """Split an address into its parts. Raises ValueError that names the allowed forms."""
    if address.startswith("/"):
        return Repository(DIRECTORY, address)
    scheme, _colon, rest = address.partition(":")
    if scheme == "sftp" and rest.startswith("//"):
        return _url(SFTP, address, address)
    if scheme == "sftp":
        match = re.fullmatch(r"(?:(?P<user>[^@:/]+)@)?(?P<host>[^@:/]+):(?P<path>.+)", rest)
        if match:
            return Repository(SFTP, address, match["host"], match["user"] or "")
    if scheme == "s3" and rest:
        found = _url(S3, address, rest if "://" in rest else f"https://{rest}")
        if urlsplit(rest if "://" in rest else f"https://{rest}").path.strip("/"):
            return found
    if scheme == "rest" and rest.startswith(("http://", "https://")):
        return _url(REST, address, rest)
    raise ValueError(f"{mask(address)!r} is not an address of a repository: use a form like {_FORMS}")


def _url(kind: str, address: str, url: str) -> Repository:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # Not quoted: a / in a password ends the host, so the port may be a part of the password.
        raise ValueError(
            f"the address of the {kind} repository has a host or a port that cannot be read: use a form like {_FORMS}."
            " Set a password in backup_environment"
        ) from None
    if parts.password is not None:
        raise ValueError(
            f"{mask(address)!r} contains a password, which logs would show. Set it in backup_environment ({REST_USER}"
            f" and {REST_SECRET} for REST, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for S3)"
        )
    if not parts.hostname:
        raise ValueError(f"{mask(address)!r} has no host: use a form like {_FORMS}")
    return Repository(kind, address, parts.hostname, parts.username or "", port)


def mask(address: str) -> str:
    """The address with `***` in place of a password, for messages and logs.

    A password may have a raw / or @: it ends at the last @ of the address.
    """
    return re.sub(r"(//[^/@:]*):.*@", r"\1:***@", address)


def environment_problems(environment: Mapping[str, str], option: str = "backup_environment") -> list[str]:
    """One message for each wrong variable of the site variable `option`."""
    found = [
        f"{option}: {name!r} is not a variable name: use letters, digits and _, not with a digit first"
        for name in environment
        if not _VARIABLE.fullmatch(name)
    ]
    found += [
        f"{option}: {name} is not allowed: use backup_repository or backup_password instead"
        for name in sorted(OURS & set(environment))
    ]
    found += [
        f"{option}: {name} has several lines: it must have one" for name, value in environment.items() if "\n" in value
    ]
    found += [f"{place} {message}" for place, message in placeholders(option, environment)]
    return found


def for_restic(repository: Repository, environment: Mapping[str, str]) -> str:
    """The address for the environment of restic.

    The address of a REST server includes the credentials: restic 0.14, of Debian 12, has no variables for them.
    """
    user, secret = environment.get(REST_USER, ""), environment.get(REST_SECRET, "")
    if repository.kind != REST or not user:
        return repository.address
    scheme, _colon, rest = repository.address.removeprefix("rest:").partition("://")
    return f"rest:{scheme}://{quote(user, safe='')}:{quote(secret, safe='')}@{rest.rpartition('@')[2]}"


def ssh_command(repository: Repository, key: str, known_hosts: str) -> str:
    """The ssh command by which restic reaches an SFTP server. It never prompts, and refuses an unknown host key."""
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=30"]
    words += ["-o", "StrictHostKeyChecking=yes"]
    words += ["-o", f"UserKnownHostsFile={known_hosts}"] if known_hosts else []
    words += ["-i", key, "-o", "IdentitiesOnly=yes"] if key else []
    words += ["-p", str(repository.port)] if repository.port else []
    words += ["-l", repository.user] if repository.user else []
    return shlex.join([*words, repository.host, "-s", "sftp"])
