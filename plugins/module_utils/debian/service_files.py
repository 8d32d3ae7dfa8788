# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates, writes and removes files of services; restores the old files on errors. Private to the collection."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files, systemd
from .conffiles import pristine

AnsibleModule = Any
"""Stands for Ansible's class. The library on the node has this file, but not Ansible."""

POLL_SECONDS = 0.2

LAST_WORDS = 20
"""Number of lines of the journal that an error quotes."""

HIDDEN = ("(not shown)\n", "(not shown, changed)\n")
"""Replacements in a diff for a file with secrets, before and after a change."""


class ServiceError(Exception):
    """An error that the operator must correct."""


class Link(str):
    """The target of a symbolic link, in place of a file's text."""

    __slots__ = ()


class ServiceFiles:
    """The files of services on this machine. Subclasses define the files, their checks and the actions of each change.

    `inspect` sets `wanted`, `active` and `enabled`, and refuses wrong files. `decide` sets `actions`.
    """

    units: tuple[str, ...] = ()
    """The services, in the order in which they load the new files."""

    start_limits: tuple[str, ...] = ()
    """Further units whose start limit is reset before each action of a service."""

    identifier = ""
    """The syslog identifier of the journal lines to quote, if a unit has several programs."""

    drop_ins: frozenset[Path] = frozenset()
    """Files that are part of a unit: a change needs a daemon-reload."""

    links: frozenset[Path] = frozenset()
    """Files that are symbolic links."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params = module.params
        self.foreign: list[Path] = []
        self.actions: dict[str, str] = {}
        """The action for each unit: `none`, `reload`, `restart`, `start`, or an action of the subclass."""

    def run(self) -> dict[str, Any]:
        """Run the module, and return its result. Raises ServiceError, OSError and ValueError."""
        # The services must be able to read the files, even if a hardened login has a stricter umask.
        os.umask(0o022)
        self.inspect()
        result = self.decide()
        if not self.module.check_mode:
            if result["changed"]:
                self.apply(result)
            self.record(result)
        return result

    # --- what a subclass defines

    def inspect(self) -> None:
        """Read the present state, and validate the wanted files. Raises ServiceError."""
        raise NotImplementedError

    def decide(self) -> dict[str, Any]:
        """Set `actions`, and return the module's result with `changed`."""
        raise NotImplementedError

    def record(self, result: dict[str, Any]) -> None:
        """Record the configuration in effect, for the next run."""

    def mode(self, path: Path) -> int:
        """The mode of a file."""
        return 0o644

    def kept(self, path: Path) -> bool:
        """Whether a file still has the right mode. Subclasses can also check the owner."""
        return path in self.links or path.stat().st_mode & 0o7777 == self.mode(path)

    def shown(self, path: Path) -> tuple[str, str]:
        """A file's text before and after, for the diff. Secrets must be hidden."""
        return self.before[path] or "", self.wanted[path] or ""

    def back_up(self) -> dict[str, Any]:
        """Copy files that must not be lost. Returns items for the module's result."""
        return {}

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        """Wait until a service uses its new files. Returns why it does not; empty on success."""
        return ""

    def is_noise(self, line: str) -> bool:
        """Whether a line of the journal does not help to explain an error."""
        return False

    def command(self, *words: str) -> tuple[int, str, str]:
        """Run a command. Returns exit code, stdout and stderr."""
        code, output, error = self.module.run_command([*words])
        return code, output, error

    # --- inspect

    def read(self, path: Path) -> str | None:
        """A file's text, or the target of a link; None if it does not exist. Raises OSError."""
        if path in self.links:
            return Link(os.readlink(path)) if path.is_symlink() else None
        return files.text(path)

    def compare(self, wanted: Mapping[Path, str | None], written: Iterable[Path] = ()) -> None:
        """Compare the wanted files with the present ones. Files in `written`, from earlier runs, that are no longer
        wanted are removed."""
        self.wanted: dict[Path, str | None] = {**dict.fromkeys(written), **wanted}
        self.before = {path: self.read(path) for path in sorted(self.wanted)}
        self.altered = [path for path, before in self.before.items() if before != self.wanted[path]]
        self.differing = [
            path
            for path, before in self.before.items()
            if path in self.altered or (before is not None and not self.kept(path))
        ]

    def read_units(self) -> None:
        """Read which services run, and which are enabled."""
        self.active = {unit: self.systemctl("is-active", "--quiet", unit)[0] for unit in self.units}
        self.enabled = {unit: self.systemctl("is-enabled", "--quiet", unit)[0] for unit in self.units}

    def refuse_foreign(self, packages: Mapping[Path, str], header: str, advice: str) -> None:
        """Refuse to replace a configuration of other origin, unless `replace` is set. Raises ServiceError.

        This collection's configurations begin with `header`. `packages` has the package of each file: a file that is
        unchanged since the package was installed may be replaced.
        """
        self.foreign = [
            path
            for path, package in packages.items()
            if (text := self.before[path]) is not None
            and not text.startswith(header)
            and not pristine(self.module.run_command, package, path)
        ]
        if self.foreign and not self.params["replace"]:
            found = " and ".join(map(str, self.foreign))
            raise ServiceError(f"This collection did not write {found}. {advice} Nothing was changed.")

    @contextlib.contextmanager
    def staged(self, directory: Path) -> Iterator[Path]:
        """Write the wanted files of a directory to a temporary directory, for the service's own checker."""
        with tempfile.TemporaryDirectory(prefix="service-files-") as name:
            stage = Path(name)
            for path, text in self.wanted.items():
                if text is not None and directory in path.parents:
                    self.write(path, text, stage / path.relative_to(directory))
            yield stage

    def refusal(self, command: Sequence[str], stage: Path, directory: Path, **options: Any) -> str:
        """Run a checker on staged files. Returns its errors, with paths of `directory`; empty if it accepts them."""
        code, output, error = self.module.run_command([*command], **options)
        if not code:
            return ""
        words = "\n".join(part.strip() for part in (output, error) if part.strip())
        return words.replace(str(stage), str(directory)) or f"exit code {code}"

    # --- decide

    @property
    def changes(self) -> bool:
        return bool(self.differing) or set(self.actions.values()) != {"none"} or not all(self.enabled.values())

    def diff(self, paths: Iterable[Path] | None = None) -> list[dict[str, str]]:
        """The diff of files, by default of those that differ."""
        return [
            {"before_header": str(path), "after_header": str(path), "before": before, "after": after}
            for path in (self.differing if paths is None else paths)
            for before, after in [self.shown(path)]
        ]

    # --- apply

    def apply(self, result: dict[str, Any]) -> None:
        """Write the files, let the services load them, and enable the services. Raises ServiceError.

        If the files cannot be written or loaded, restores the old files.
        """
        result.update(self.back_up())
        try:
            self.put(self.wanted)
            for unit in self.units:
                self.bring(unit, self.actions[unit])
        except (ServiceError, OSError) as error:
            raise ServiceError(f"{error}\n{self.put_back()}") from error
        for unit in self.units:
            if not self.enabled[unit]:
                self.do("enable", unit)

    def put(self, texts: Mapping[Path, str | None]) -> None:
        """Write the files that differ. Raises ServiceError and OSError."""
        for path in self.differing:
            self.write(path, texts[path], path)
        if self.drop_ins & set(self.differing):
            self.do("daemon-reload")

    def write(self, path: Path, text: str | None, place: Path) -> None:
        """Write the file that is wanted at `path` to `place`. The text None removes it. Raises OSError."""
        if isinstance(text, Link):
            files.link(place, text)
        elif text is None and path in self.links:
            place.unlink(missing_ok=True)
        else:
            files.write(place, text, self.mode(path))

    def put_back(self) -> str:
        """Restore the old files, and let the services load them. Returns the result as text."""
        end, restored = "The files were not changed in this run", bool(self.differing)
        if self.differing:
            end = "The old files are back in place"
            try:
                with contextlib.suppress(ServiceError):
                    self.put(self.before)
            except OSError as error:
                # The caller also reports the error of the change, so this error must not replace it.
                end, restored = f"Not all old files could be restored: {error}", False
        for unit in self.units:
            if not self.active[unit]:
                # Otherwise systemd would restart the service again and again.
                self.systemctl("stop", unit)
            elif restored and self.actions[unit] != "none":
                done, _words = self.call("restart" if self.actions[unit] == "restart" else "reload", unit)
                end += (
                    f", and {unit} runs with them" if done else f", but {unit} does not run: see journalctl -u {unit}"
                )
        return f"{end}."

    def bring(self, unit: str, action: str) -> None:
        """Let a service load the new files. Raises ServiceError."""
        if action == "none":
            return
        began = time.time()
        done, words = self.call(action, unit)
        why = self.why_not_up(unit, action, began) if done else words
        if why or not done:
            raise ServiceError(f"{unit} did not {action}. Its last log lines:\n{self.last_words(unit, began) or why}")

    def call(self, action: str, unit: str) -> tuple[bool, str]:
        """Start, restart or reload a service. Its start limit is reset before."""
        self.systemctl("reset-failed", unit, *self.start_limits)
        return self.systemctl(action, unit)

    def wait(self, check: Callable[[], bool | None], seconds: float) -> bool:
        """Repeat a check until it returns True or False, for up to `seconds`; then False. None means: not known yet."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (answer := check()) is not None:
                return answer
            time.sleep(POLL_SECONDS)
        return False

    def last_words(self, unit: str, since: float) -> str:
        """The last lines that a service wrote to the journal. `since` is in seconds since 1970."""
        filters = [f"--identifier={self.identifier}"] if self.identifier else []
        _code, output, _error = self.command(
            "journalctl",
            f"--unit={unit}",
            *filters,
            f"--since=@{since:.3f}",
            "--output=cat",
            "--lines=200",
            "--no-pager",
        )
        return "\n".join([line for line in output.splitlines() if not self.is_noise(line)][-LAST_WORDS:])

    def systemctl(self, *words: str) -> tuple[bool, str]:
        """Run systemctl. Returns whether it succeeded, and its message."""
        code, output, error = self.command("systemctl", *words)
        return code == 0, (error or output).strip()

    def do(self, *words: str) -> None:
        """Run systemctl. Raises ServiceError if it fails."""
        done, message = self.systemctl(*words)
        if not done:
            raise ServiceError(f"systemctl {' '.join(words)} failed: {message}")


# --- remove


@dataclass(frozen=True)
class Part:
    """Services and files that are removed together. If one configuration is of other origin, none is removed."""

    services: Sequence[str]
    """The services, in the order of stopping."""
    configs: Sequence[Path]
    header: str
    """The first characters of all configurations of this collection."""
    others: Sequence[Path] = ()
    """This collection's other files, in the order of removal."""
    roots: Sequence[Path] = ()
    """Directories whose subdirectories are removed if they are empty."""


@dataclass(frozen=True)
class Left:
    """What a removal of parts would stop and remove on a machine."""

    services: Mapping[str, bool]
    """Services that are not inactive or are enabled, each with whether its unit is installed."""
    files: Sequence[tuple[Part, Sequence[Path]]]
    """This collection's files of each part, in the order of removal."""
    foreign: Sequence[Path]
    """Configurations of other origin. Their parts are not removed."""

    @property
    def paths(self) -> list[str]:
        return [str(path) for _part, found in self.files for path in found]


def left(parts: Iterable[Part]) -> Left:
    """Find the services and files of parts on this machine. Raises SystemdError and OSError."""
    found = [(part, *_present(part)) for part in parts]
    return Left(
        _to_stop([unit for part, ours, _foreign in found if ours for unit in part.services]),
        [(part, ours) for part, ours, _foreign in found],
        [path for _part, _ours, foreign in found for path in foreign],
    )


def remove(module: AnsibleModule, find: Callable[[], Sequence[Part]]) -> dict[str, Any]:
    """Stop services and remove their files; in check mode, only report. Returns the module's result, or fails it.

    Configurations are removed last, after systemd has forgotten the drop-ins. They show a later run that an interrupted
    removal must be continued.
    """
    try:
        there = left(find())
        if not module.check_mode:
            for unit, installed in there.services.items():
                systemd.stop_and_disable(unit, installed=installed)
            for part, found in there.files:
                _unlink(part, [path for path in found if path not in part.configs])
            if there.paths:
                systemd.systemctl("daemon-reload")
            for part, found in there.files:
                _unlink(part, [path for path in found if path in part.configs])
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Correct the cause, and run again: the removal continues.")
    return {
        "changed": bool(there.paths),
        "stopped": list(there.services),
        "removed": there.paths,
        "foreign": [str(path) for path in there.foreign],
        "diff": {"before": "".join(f"{path}\n" for path in there.paths), "after": ""},
    }


def _present(part: Part) -> tuple[list[Path], list[Path]]:
    """The files to remove, in order, and the configurations of other origin. Raises OSError."""
    texts = {path: files.text(path) for path in part.configs}
    configs = [path for path, text in texts.items() if text is not None]
    foreign = [path for path in configs if not (texts[path] or "").startswith(part.header)]
    if foreign or not configs:
        return [], foreign
    # A link counts even if its target is missing.
    return [*(path for path in part.others if os.path.lexists(path)), *configs], []


def _to_stop(services: Iterable[str]) -> dict[str, bool]:
    """The services that are enabled or not inactive, each with whether its unit is there. Raises SystemdError."""
    shown = systemd.show(services, ["LoadState", "ActiveState", "UnitFileState"])
    return {
        unit: known["LoadState"] != "not-found"
        for unit, known in shown.items()
        if known["ActiveState"] != "inactive" or known["UnitFileState"] == "enabled"
    }


def _unlink(part: Part, found: Sequence[Path]) -> None:
    """Remove files, and subdirectories of the part's roots that become empty. Raises OSError."""
    for path in found:
        path.unlink()
        if path.parent.parent in part.roots and not any(path.parent.iterdir()):
            path.parent.rmdir()
