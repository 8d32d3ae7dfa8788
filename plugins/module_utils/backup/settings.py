# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a node's backups. Private to the collection; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..core.problems import is_integer
from ..core.secrets import ADVICE, SECRET_LENGTH, is_placeholder
from . import repository, s3_request

SCHEMA = 1

KEEP = ("last", "hourly", "daily", "weekly", "monthly", "yearly")
"""The keys of `backup_keep`. Source: restic-forget(1), options --keep-*."""

ACCESS: dict[str, Any] = {
    "environment": {"type": "dict", "default": {}, "no_log": True},
    "sftp_key": {"type": "str", "default": "", "no_log": True},
    "known_hosts": {"type": "list", "elements": "str", "default": []},
    "ca_file": {"type": "str", "default": ""},
}
"""Options of the modules `backup` and `backup_prune` that say how restic reaches a repository."""

_SUBSET = re.compile(r"\d+(?:\.\d+)?%|\d+/\d+|\d+[KMGT]?")
"""The values of `restic check --read-data-subset`. Source: restic-check(1)."""


@dataclass(frozen=True)
class Settings:
    """All settings except the secrets."""

    repository: str
    host: str
    """The name under which the node's snapshots are kept."""
    paths: tuple[str, ...]
    """Absolute paths to save, with shell patterns. A path that is not on the node is ignored."""
    exclude: tuple[str, ...] = ()
    keep: Mapping[str, int] = field(default_factory=dict)
    check_subset: str = "5%"
    ca_file: str = ""
    max_mib: int = 1024
    """Limit of a backup's size, in MiB. A larger backup is refused: it would hold models by mistake."""
    lock_minutes: int = 30
    """How many minutes a job waits while the job of another node locks the repository."""
    append_only: bool = False
    """Whether the repository's server refuses deletions by the node. Then the node never prunes."""
    intervals: Mapping[str, int] = field(default_factory=dict)
    """The longest time between two runs of each job by its schedule, in seconds; 0 without a schedule."""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: Any) -> Settings:
        """Raises ValueError."""
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise ValueError(f"the backup's settings are missing, or not of schema {SCHEMA}")
        known = {one.name for one in fields(cls)} & set(value)
        given: dict[str, Any] = {
            key: tuple(value[key]) if isinstance(value[key], list) else value[key] for key in known
        }
        if missing := [key for key in ("repository", "host", "paths") if key not in given]:
            raise ValueError(f"the backup's settings have no {' and no '.join(missing)}")
        return cls(**given)


def problems(settings: Settings, environment: Mapping[str, str], *, password: str) -> list[str]:
    """A message for each mistake, with the allowed values."""
    found = []
    if not settings.repository:
        found.append("backup_repository is not set: set an address such as /srv/backup or sftp:user@host:/srv/backup")
    else:
        try:
            parsed = repository.parse(settings.repository)
        except ValueError as error:
            found.append(f"backup_repository: {error}")
        else:
            found += append_only_problems(parsed, environment) if settings.append_only else []
    if not password:
        found.append(
            "backup_password is not set: set a password to encrypt the repository. Keep it in the vault, and on paper"
        )
    elif "\n" in password:
        found.append("backup_password has several lines: it must have one")
    elif is_placeholder(password) or len(password) < SECRET_LENGTH:
        found.append(f"backup_password is a placeholder or has fewer than {SECRET_LENGTH} characters: {ADVICE}")
    if not settings.host.strip():
        found.append("backup_host is empty: set the name under which the node's snapshots are kept")
    found += repository.environment_problems(environment)
    for name, patterns in (("backup_paths", settings.paths), ("backup_exclude", settings.exclude)):
        for pattern in patterns:
            if not pattern.startswith("/") or ".." in pattern.split("/") or not pattern.strip("/*"):
                found.append(f"{name}: {pattern!r} is not allowed: use an absolute path below /, without ..")
    for key, count in settings.keep.items():
        if key not in KEEP:
            found.append(f"backup_keep: {key!r} is not a known key: use {', '.join(KEEP)}")
        elif not is_integer(count) or count < 1:
            found.append(f"backup_keep: {key} is {count!r}: it must be a whole number of 1 or more")
    if not settings.keep:
        found.append(f"backup_keep is empty, so no snapshot would be kept: set at least one of {', '.join(KEEP)}")
    if not _SUBSET.fullmatch(settings.check_subset):
        found.append(f"backup_check_subset is {settings.check_subset!r}: use a value like 5%, 1/10 or 500M")
    if settings.ca_file and not settings.ca_file.startswith("/"):
        found.append(f"backup_ca_file is {settings.ca_file!r}: it must be an absolute path on the node")
    for name, number in (("backup_max_mib", settings.max_mib), ("backup_lock_minutes", settings.lock_minutes)):
        if number < 1:
            found.append(f"{name} is {number}: it must be 1 or more")
    return found


def append_only_problems(parsed: repository.Repository, environment: Mapping[str, str]) -> list[str]:
    """A message for each setting that contradicts `backup_append_only`."""
    if parsed.kind not in (repository.REST, repository.S3):
        return [
            f"backup_append_only is true, but backup_repository is {parsed.address!r}: only the server of a rest:"
            ' or s3: repository can refuse a deletion. See "A rooted node cannot delete backups" in docs/backup.md'
        ]
    if parsed.kind == repository.S3 and not (environment.get(s3_request.KEY) and environment.get(s3_request.SECRET)):
        return [
            f"backup_append_only is true, but backup_environment has no {s3_request.KEY} and {s3_request.SECRET}: set"
            " the key that the bucket's policy names for this node"
        ]
    return []
