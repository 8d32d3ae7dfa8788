# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl` has all commands, and the commands that delay each start of an engine import few files."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import entry, unit_steps

LIBRARY = "ansible_collections.baremetal.inference.plugins.module_utils"

IMPORTS = f"""
import contextlib, sys
from {LIBRARY}.node.cli import entry
with contextlib.suppress(SystemExit):
    entry.main(sys.argv[1:])
print(*sorted(name.removeprefix("{LIBRARY}.") for name in sys.modules if name.startswith("{LIBRARY}.")))
"""


def imported(*words: str) -> list[str]:
    """The files of the library that a command imports."""
    done = subprocess.run([sys.executable, "-c", IMPORTS, *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("verb", unit_steps.VERBS)
def test_a_command_of_a_start_imports_few_files(verb: str) -> None:
    found = imported(verb, "--help")
    heavy = ("node.cli.inferctl", "node.doctor", "node.swap", "models.fit.memory")
    assert not set(heavy) & set(found) and len(found) < 75, len(found)


def test_other_commands_import_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        entry.main(["--help"])
    text = capsys.readouterr().out
    assert all(verb in text for verb in ("status", "swap", "doctor", *unit_steps.VERBS))
    assert "node.swap.perform" in imported("status", "--help")


def test_a_missing_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        entry.main([])
    assert caught.value.code == 2 and "required: COMMAND" in capsys.readouterr().err
