# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the firmware, by shim, to enrol a key at the next boot. Private to the collection."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from typing import Protocol

from ...core.commands import Outcome

HASH = re.compile(r"^\$\w+\$[./A-Za-z0-9$=]+$", re.MULTILINE)
"""A password's hash, in the form of crypt(5). mokutil prints its prompts before the hash, to the same stream."""

PASSWORD = re.compile(r"[!-~]{8,256}")
"""Passwords that can be typed into shim's dialogue, whose keyboard has the layout of the United States. Source of the
maximum: PASSWORD_MAX of mokutil. The minimum is ours."""


class EnrolmentError(Exception):
    """The request failed; the text is for the operator."""


class Run(Protocol):
    """Runs a program with a time limit in seconds, like `commands.run`."""

    def __call__(self, command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome: ...


def password_problem(password: str) -> str | None:
    """Why a password cannot be used, without the password itself; None for a usable password."""
    if PASSWORD.fullmatch(password):
        return None
    return (
        "the password must have 8 to 256 characters of ASCII without blanks: a person types it at the next boot, on a "
        "keyboard with the layout of the United States. Letters and digits are the safest"
    )


def request(run: Run, certificate: str, password: str, timeout: float) -> None:
    """Ask for the enrolment of a certificate. A person confirms it with the password at the
    machine's console, during the next boot.

    Neither the password nor its hash is in a command line: mokutil reads a pipe and a file of mode 0600. Raises
    EnrolmentError.
    """
    made = run(["mokutil", "--generate-hash"], timeout, stdin=f"{password}\n{password}\n")
    found = HASH.search(made.stdout)
    if made.code != 0 or found is None:
        raise EnrolmentError(f"mokutil printed no hash of the password: {_words(made)}")
    with tempfile.NamedTemporaryFile("w", prefix="inference-mok-", encoding="ascii") as file:
        file.write(found[0])
        file.flush()
        asked = run(["mokutil", "--import", certificate, "--hash-file", file.name], timeout)
    if asked.code != 0:
        raise EnrolmentError(f"mokutil refused the request to enrol {certificate}: {_words(asked)}")


def _words(outcome: Outcome) -> str:
    """The output of a program, without hashes."""
    text = re.sub(r"\$\w+\$\S+", "", f"{outcome.stdout}\n{outcome.stderr}")
    return outcome.message or " ".join(text.split()) or f"exit status {outcome.code}"
