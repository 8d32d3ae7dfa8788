# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change that comes undone by itself unless it is confirmed in time. Private to the collection.

What brings the old state back is a timer of systemd on the node: it works whatever becomes of Ansible and of the
connection. All of it lives in /run, where only root can read.
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
# Brings back what was there before a trial, unless the trial is over.
cd {directory} || exit 1
exec 9>>lock
flock 9
[ -e pending ] || exit 0
rm -f pending
{steps}
"""

QUICK = 60
"""Seconds for a command."""


class TrialError(Exception):
    """A trial that cannot begin or end as it should; the text is for the operator."""


class Trial:
    """One trial at a time of a name."""

    def __init__(self, name: str) -> None:
        self.unit = f"inference-trial-{name}"
        self.directory = RUN / name

    @property
    def pending(self) -> bool:
        """Whether it goes on."""
        return (self.directory / "pending").exists()

    @property
    def left(self) -> list[str]:
        """What differs though the node is as declared: an earlier run was cut off, and its change will be undone."""
        return ["the change of an earlier run is on trial, and will be undone"] if self.pending else []

    def begin(self, steps: Sequence[str], seconds: int) -> None:
        """From now on, `steps` (lines of shell, where each is tried) bring the old state back. Raises TrialError.

        Call it before the change, and `rollback` before looking at the old state: an earlier run may have been cut off.
        """
        with self._locked():
            script = self.directory / "rollback"
            script.write_text(
                SCRIPT.format(directory=shlex.quote(str(self.directory)), steps="\n".join(steps)), encoding="utf-8"
            )
            (self.directory / "pending").touch()
            # One that was confirmed by a run that ended right then.
            _run("systemctl", "stop", f"{self.unit}.timer")
            try:
                _must(
                    "systemd-run", f"--unit={self.unit}", f"--on-active={seconds}", "--timer-property=AccuracySec=1",
                    "--collect", "/bin/sh", str(script),
                )  # fmt: skip
            except TrialError:
                (self.directory / "pending").unlink()
                raise

    def keep(self, name: str, text: str) -> Path:
        """Keep an old text for the steps to bring back. Returns its path."""
        self._make()
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def confirm(self) -> None:
        """The change is permanent. Raises TrialError where the old state is back already."""
        with self._locked():
            if not self.pending:
                raise TrialError("The trial was over before it was confirmed: the old state is back.")
            (self.directory / "pending").unlink()
        _run("systemctl", "stop", f"{self.unit}.timer")

    def rollback(self) -> bool:
        """Bring the old state back now. Returns whether there was anything to bring back. Raises TrialError."""
        if not self.pending:
            return False
        _must("/bin/sh", str(self.directory / "rollback"))
        _run("systemctl", "stop", f"{self.unit}.timer")
        return True

    def end(self, phase: str, check_mode: bool) -> bool:
        """Confirm the change, or bring the old state back. Returns whether a trial ends. Raises TrialError."""
        changed = self.pending
        if check_mode:
            return changed
        try:
            if phase == ROLLBACK:
                return self.rollback()
            self.confirm()
        except subprocess.TimeoutExpired as error:
            raise TrialError(str(error)) from error
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
    """Exit code and output of a command."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=QUICK,
        env={**os.environ, **environment},
        check=False,
    )
    return result.returncode, (result.stdout + result.stderr).strip()


def _must(*command: str) -> None:
    """Run a command. Raises TrialError."""
    code, output = _run(*command)
    if code:
        raise TrialError(f"{' '.join(command)} failed ({code}): {output}")
