# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request to enrol a key, and how mokutil gets the password."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import enrolment

HASH = "$6$a7Yw./x$" + "kJ7/" * 21 + "z0"
PASSWORD = "typed-by-a-person"


class Shim:
    """mokutil, as Debian 12 and 13 have it: prompts and hash come in one stream."""

    def __init__(self, hash_code: int = 0, import_code: int = 0) -> None:
        self.codes = {"--generate-hash": hash_code, "--import": import_code}
        self.commands: list[list[str]] = []
        self.stdin = ""
        self.file = Path()
        self.mode = 0
        self.imported = ""

    def __call__(self, command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
        self.commands.append(list(command))
        code = self.codes[command[1]]
        if command[1] == "--generate-hash":
            self.stdin = stdin
            output = (
                "EFI variables are not supported" if code else f"input password: \ninput password again: \n{HASH}\n"
            )
            return Outcome(code, output)
        self.file = Path(command[-1])
        self.mode, self.imported = self.file.stat().st_mode & 0o777, self.file.read_text(encoding="ascii")
        return Outcome(code, stderr=f"Failed to enroll new keys {HASH}" if code else "")


def test_no_command_line_has_the_password_or_its_hash() -> None:
    shim = Shim()
    enrolment.request(shim, "/key.der", PASSWORD, 7)
    assert shim.stdin == f"{PASSWORD}\n{PASSWORD}\n"
    assert shim.imported == HASH
    assert shim.mode == 0o600
    assert not shim.file.exists()
    words = " ".join(word for command in shim.commands for word in command)
    assert PASSWORD not in words and HASH not in words
    assert shim.commands[-1][:4] == ["mokutil", "--import", "/key.der", "--hash-file"]


@pytest.mark.parametrize(
    ("shim", "words"),
    [(Shim(hash_code=255), "EFI variables are not supported"), (Shim(import_code=255), "Failed to enroll new keys")],
)
def test_the_error_of_a_refused_request_has_no_secrets(shim: Shim, words: str) -> None:
    with pytest.raises(enrolment.EnrolmentError, match=words) as error:
        enrolment.request(shim, "/key.der", PASSWORD, 7)
    assert HASH not in str(error.value)
    assert PASSWORD not in str(error.value)


@pytest.mark.parametrize("password", ["", "short", "with blank", "grüßgott8", "x" * 257, "new\nline8"])
def test_a_password_of_wrong_length_or_with_a_forbidden_character_is_a_problem(password: str) -> None:
    problem = enrolment.password_problem(password)
    assert problem is not None
    assert not password or password not in problem


def test_a_password_of_8_allowed_characters_is_no_problem() -> None:
    assert enrolment.password_problem("Abcdefg8") is None
