# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a change on trial: the node undoes the change unless a run confirms it in time. Private to the collection.

A systemd timer on the node restores the old state, so a rollback needs neither Ansible nor a connection. The files of a
trial are in /run, and only root can read them.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

APPLY, TRIAL, CONFIRM, ROLLBACK = PHASES = ("apply", "trial", "confirm", "rollback")
"""The option `phase` of modules that can put a change on trial."""

ENDINGS = (CONFIRM, ROLLBACK)
"""Phases that end a trial."""

RUN = Path("/run/inference/trials")

SCRIPT = """\
#!/bin/sh
# Restores the state before a trial, unless the trial is over.
cd {directory} || exit 1
exec 9>>lock
flock 9
[ -e pending ] || exit 0
rm -f pending
failed=0
{steps}
exit $failed
"""

QUICK = 60
"""Timeout of a command, in seconds."""


class TrialError(Exception):
    """A trial cannot begin or end. The message says why."""


class Trial:
    """A trial with a name. Only one trial of a name can run at a time."""

    def __init__(self, name: str) -> None:
        self.unit = f"inference-trial-{name}"
        self.directory = RUN / name

    @property
    def pending(self) -> bool:
        """Whether a trial runs."""
        return (self.directory / "pending").exists()

    @property
    def left(self) -> list[str]:
        """A difference to report if a trial of an interrupted run is pending: the node will undo its change."""
        return ["the change of an earlier run is on trial, and will be undone"] if self.pending else []

    def begin(self, steps: Sequence[str], seconds: int) -> None:
        """Start a trial of `seconds`. A rollback runs all `steps`: lines of shell that restore the old state. The
        rollback fails if a step fails.

        Call this before the change. Call `rollback` before the old state is read, because an earlier run may have been
        interrupted. Raises TrialError.
        """
        with self._locked():
            script = self.directory / "rollback"
            lines = "\n".join(f"{{ {step}\n}} || failed=1" for step in steps)
            script.write_text(SCRIPT.format(directory=shlex.quote(str(self.directory)), steps=lines), encoding="utf-8")
            (self.directory / "pending").touch()
            try:
                # An interrupted run can have confirmed its trial, and left the timer.
                _run("systemctl", "stop", f"{self.unit}.timer")
                _must(
                    "systemd-run", f"--unit={self.unit}", f"--on-active={seconds}", "--timer-property=AccuracySec=1",
                    "--collect", "/bin/sh", str(script),
                )  # fmt: skip
            except TrialError:
                (self.directory / "pending").unlink()
                raise

    def keep(self, name: str, text: str) -> Path:
        """Store an old text for the steps. Returns its path."""
        self._make()
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def confirm(self) -> None:
        """Make the change permanent. Raises TrialError if no trial is pending: the old state is then back."""
        with self._locked():
            if not self.pending:
                raise TrialError("The trial ended before it was confirmed: the old state is back. Run again.")
            (self.directory / "pending").unlink()
        _run("systemctl", "stop", f"{self.unit}.timer")

    def rollback(self) -> bool:
        """Restore the old state now. Returns whether a trial was pending. Raises TrialError."""
        if not self.pending:
            return False
        _must("/bin/sh", str(self.directory / "rollback"))
        _run("systemctl", "stop", f"{self.unit}.timer")
        return True

    def end(self, phase: str, check_mode: bool) -> bool:
        """End a trial by `phase`: confirm the change or restore the old state. Returns whether a trial was pending.

        Raises TrialError.
        """
        changed = self.pending
        if check_mode:
            return changed
        if phase == ROLLBACK:
            return self.rollback()
        self.confirm()
        return changed

    def _make(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._make()
        with (self.directory / "lock").open("a", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _run(*command: str) -> tuple[int, str]:
    """Run a command. Returns exit code and output with stderr. Raises TrialError if the command hangs."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUICK,
            env={**os.environ, **environment},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TrialError(f"{shlex.join(command)} did not end within {QUICK} s") from error
    return result.returncode, (result.stdout + result.stderr).strip()


def _must(*command: str) -> None:
    """Run a command. Raises TrialError if it fails."""
    code, output = _run(*command)
    if code:
        raise TrialError(f"{' '.join(command)} failed ({code}): {output}")
