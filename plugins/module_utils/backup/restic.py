# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the program restic, and classifies its errors. Private to the collection."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core.commands import NOT_INSTALLED, NOT_RUNNABLE, TIMEOUT, Outcome
from ..core.commands import run as run_command
from . import repository
from .places import Places
from .settings import Settings

ABSENT, WRONG_PASSWORD, LOCKED, UNREACHABLE, NOT_THERE, OTHER = (
    "absent",
    "wrong_password",
    "locked",
    "unreachable",
    "not_installed",
    "other",
)

TAG = "inference-node"
"""Tag of this collection's snapshots. Prune removes only snapshots with this tag."""

QUICK = 60.0
"""Timeout in seconds of a query that reads no data. Without it, restic retries a lost server for minutes."""

LONG = 12 * 3600.0
"""Timeout of a job, in seconds. With the default backup_timeout_hours, systemd ends the job earlier."""

_CODES = {10: ABSENT, 11: LOCKED, 12: WRONG_PASSWORD}
"""Since restic 0.17. Source: restic's manual, "Scripting", exit codes."""

_WORDS = (
    (WRONG_PASSWORD, r"wrong password or no key found"),
    (LOCKED, r"already locked"),
    # restic 0.14 of Debian 12 exits with 1 for every error.
    (
        ABSENT,
        r"unable to open config file: .*(does not exist|no such file|NoSuch|\(404\))",
    ),
    (
        UNREACHABLE,
        r"connection refused|no route to host|timed? ?out|no such host|could not resolve|sftp session|Host key"
        r" verification|unable to open repository|certificate|Permission denied|Forbidden|Unauthorized|\(401\)",
    ),
)


class ResticError(Exception):
    """restic failed. `kind` is the reason; the message is for operators, and quotes restic."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Access:
    """How restic reaches a repository. Secrets are passed as paths of files, credentials in the environment."""

    address: str
    password_file: str
    environment: Mapping[str, str]
    key: str = ""
    known_hosts: str = ""
    ca_file: str = ""
    cache: str = ""

    @classmethod
    def of_node(cls, places: Places, settings: Settings, environment: Mapping[str, str]) -> Access:
        """The access of the node's own jobs."""
        return cls(
            address=settings.repository,
            password_file=str(places.password),
            environment=environment,
            key=str(places.key) if places.key.exists() else "",
            known_hosts=str(places.known_hosts) if places.known_hosts.exists() else "",
            ca_file=settings.ca_file,
            cache=str(places.cache),
        )

    def variables(self) -> dict[str, str]:
        """The environment variables for restic."""
        parsed = repository.parse(self.address)
        found = {
            **self.environment,
            "RESTIC_REPOSITORY": repository.for_restic(parsed, self.environment),
            "RESTIC_PASSWORD_FILE": self.password_file,
            # restic needs HOME for its default paths.
            "HOME": "/root",
        }
        return found | ({"RESTIC_CACHE_DIR": self.cache} if self.cache else {})

    def options(self) -> list[str]:
        """The options for the command line. None of them is a secret."""
        parsed = repository.parse(self.address)
        words = ["--cacert", self.ca_file] if self.ca_file else []
        words += [] if self.cache else ["--no-cache"]
        if parsed.kind == repository.SFTP:
            words += ["-o", f"sftp.command={repository.ssh_command(parsed, self.key, self.known_hosts)}"]
        return words


class Restic:
    """Calls restic for one repository."""

    def __init__(self, access: Access, run: Callable[..., Outcome] = run_command, program: str = "restic") -> None:
        self.access = access
        self._run = run
        self._program = program

    def call(self, *arguments: str, timeout: float = QUICK, directory: Path | None = None) -> str:
        """Run restic and return what it printed. Raises ResticError."""
        command = [self._program, *self.access.options(), *arguments]
        if directory is not None:
            command = ["env", f"--chdir={directory}", *command]
        outcome = self._run(command, timeout, self.access.variables())
        if outcome.code == 0:
            return outcome.stdout
        raise self._error(outcome, arguments[0])

    def _error(self, outcome: Outcome, verb: str) -> ResticError:
        said = self._clean(spoken(f"{outcome.stderr}\n{outcome.stdout}"))
        kind = meaning(outcome)
        where = repository.mask(self.access.address)
        last = "\n".join(said.splitlines()[-6:])
        text = {
            ABSENT: f"there is no repository at {where}",
            WRONG_PASSWORD: (
                f"the repository at {where} does not open with this password. Set backup_password to the password with"
                " which the repository was created. To change the password, first add the new one: run"
                " `inference-backup restic key add` on a machine that has the old one. See"
                ' "Change the password" in docs/backup.md'
            ),
            LOCKED: f"the repository at {where} is locked by a running job. Try again when that job has ended",
            UNREACHABLE: (
                f"the repository at {where} cannot be reached, or refuses this node. Check server and credentials"
            ),
            NOT_THERE: "restic is not installed: run baremetal.inference.backup, which installs it",
            OTHER: f"restic {verb} failed with {outcome.message or f'exit code {outcome.code}'}",
        }[kind]
        return ResticError(kind, f"{text}. restic said: {last}" if last and kind != NOT_THERE else text)

    def _clean(self, text: str) -> str:
        # The longest first: a shorter value may be a part of a longer one.
        for value in sorted(self.access.environment.values(), key=len, reverse=True):
            # Values of up to 5 characters, such as "true", are not secrets.
            text = text.replace(value, "***") if len(value) > 5 else text
        return repository.mask(text).strip()

    # --- questions

    def identity(self) -> str:
        """The repository's id. Raises ResticError if there is no repository or the password does not open it."""
        return str(json.loads(self.call("cat", "config", "--no-lock"))["id"])

    def create(self) -> str:
        """Create a repository and return its id. Raises ResticError, also if there already is a repository."""
        self.call("init")
        return self.identity()

    def snapshots(self, host: str) -> list[dict[str, Any]]:
        """This collection's snapshots of a host, oldest first. Raises ResticError."""
        text = self.call("snapshots", "--json", "--no-lock", "--host", host, "--tag", TAG, timeout=QUICK * 4)
        # Not sorted by the texts of the times: the time zone in them changes in spring and autumn.
        return sorted(json.loads(text) or [], key=lambda one: datetime.fromisoformat(str(one["time"])))

    # --- jobs

    def patiently(
        self, arguments: list[str], minutes: float, pause: float = 15.0, directory: Path | None = None
    ) -> str:
        """Run a restic command that locks the repository. Raises ResticError.

        While another job holds the lock, the command is repeated every `pause` seconds, for up to `minutes`. Before
        every try, `restic unlock` removes stale locks: those that were not renewed for 30 minutes, and those of an
        ended process of this host. Source: restic-unlock(1), and lock.Stale in restic's source.
        """
        deadline = time.monotonic() + minutes * 60
        while True:
            self.call("unlock", timeout=QUICK * 4)
            try:
                return self.call(*arguments, timeout=LONG, directory=directory)
            except ResticError as error:
                if error.kind != LOCKED or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)

    def newest(self, host: str) -> float:
        """Time of the last of snapshots(), in seconds since 1970; 0 without a snapshot. Raises ResticError."""
        found = self.snapshots(host)
        return datetime.fromisoformat(found[-1]["time"]).timestamp() if found else 0.0

    def backup(
        self, directory: Path, host: str, tags: list[str], minutes: float, moment: float | None = None
    ) -> dict[str, Any]:
        """Save the content of a directory as the root of a snapshot; return restic's summary. Raises ResticError.

        `moment` is the snapshot's time in seconds since 1970; None for now.
        """
        # Each copy has a new inode and ctime. Size and mtime are those of the original file.
        words = ["backup", "--json", "--host", host, "--ignore-inode", "--ignore-ctime"]
        for tag in (TAG, *tags):
            words += ["--tag", tag]
        if moment is not None:
            # restic expects whole seconds in the machine's time zone: restic-backup(1).
            words += ["--time", datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M:%S")]
        text = self.patiently([*words, "."], minutes, directory=directory)
        return summary(text)

    def outdated(self, host: str, rules: list[str]) -> set[str]:
        """The short IDs of the host's snapshots that the rules (options of `restic forget`) do not keep.

        Removes nothing. Raises ResticError.
        """
        text = self.call(*_forget(host, rules), "--dry-run", "--no-lock", "--json", timeout=LONG)
        lists = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
        return {str(one["short_id"]) for groups in lists for group in groups for one in group["remove"] or []}

    def forget(self, host: str, rules: list[str], minutes: float, ids: set[str], advice: str) -> None:
        """Remove the outdated snapshots, and data that no other snapshot uses. Raises ResticError.

        `ids` is the result of outdated(). If the server has refused, the error ends with `advice`.
        """
        self.patiently([*_forget(host, rules), "--prune"], minutes)
        # restic 0.18 ends with success although the server has refused each deletion.
        left = ids & {str(one["short_id"]) for one in self.snapshots(host)}
        if left:
            raise ResticError(
                OTHER,
                f"the repository at {repository.mask(self.access.address)} does not let these credentials delete:"
                f" snapshots {', '.join(sorted(left))} of {host} are still there. {advice}",
            )

    def restore(self, snapshot: str, target: Path) -> None:
        """Write a whole snapshot below target, and verify the files. Raises ResticError."""
        self.call("restore", snapshot, "--no-lock", "--target", str(target), "--verify", timeout=LONG)


def _forget(host: str, rules: list[str]) -> list[str]:
    """The arguments that select the host's snapshots of this collection by the rules."""
    return ["forget", "--host", host, "--tag", TAG, "--group-by", "host", *rules]


def spoken(text: str) -> str:
    """restic's error messages as plain text, without progress messages.

    Source of the JSON forms: restic's manual, "Scripting", section "JSON output".
    """
    lines = []
    for line in text.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or "message_type" not in message:
            lines.append(line)
        elif message["message_type"] == "exit_error":
            lines.append(str(message["message"]))
        elif message["message_type"] == "error":
            error = message.get("error")
            # restic 0.14 has no message there, but only the kind of error.
            words = error.get("message") or json.dumps(error) if isinstance(error, dict) else str(error)
            lines.append(f"{message.get('item', '')}: {words}")
    return "\n".join(lines)


def meaning(outcome: Outcome) -> str:
    """Classify restic's failure: one of the constants ABSENT to OTHER."""
    if outcome.failure in (NOT_INSTALLED, NOT_RUNNABLE) or outcome.code == 127:
        return NOT_THERE
    if outcome.code in _CODES:
        return _CODES[outcome.code]
    for kind, pattern in _WORDS:
        if re.search(pattern, f"{outcome.stderr}\n{outcome.stdout}", re.IGNORECASE):
            return kind
    return UNREACHABLE if outcome.failure == TIMEOUT else OTHER


def summary(text: str) -> dict[str, Any]:
    """The summary that ends the output of `restic backup --json`. Raises ResticError if there is none."""
    for line in reversed(text.splitlines()):
        if '"summary"' in line:
            found = json.loads(line)
            if isinstance(found, dict) and found.get("message_type") == "summary":
                return found
    raise ResticError(
        OTHER, "restic backup ended without a summary: check the snapshot with inference-backup restic snapshots"
    )
