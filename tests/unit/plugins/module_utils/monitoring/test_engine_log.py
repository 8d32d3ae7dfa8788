# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of a traceback may leave the machine. Molecule tests the whole configuration."""

from __future__ import annotations

import re
import subprocess

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import engine_log

CASES = {
    "FRAME": {
        "Traceback (most recent call last):": True,
        '  File "/venv/vllm/v1/engine/core.py", line 1750, in run_engine_core': True,
        '  File "<string>", line 1, in <module>': True,
        "During handling of the above exception, another exception occurred:": True,
        '    raise ValueError("a prompt")': False,
        "           ^^^^^^": False,
        "During handling of my order, 2 cups broke": False,
    },
    "EXCEPTION": {
        "ValueError: a prompt": True,
        "vllm.exceptions.VLLMValidationError: a prompt": True,
        "KeyboardInterrupt": True,
        "Error in create_messages: a prompt": False,
        "a prompt with a ValueError: inside": False,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_each_pattern_finds_its_lines_and_no_others(name: str) -> None:
    pattern = getattr(engine_log, name)
    assert {text: bool(re.search(pattern, text)) for text in CASES[name]} == CASES[name]
    # rsyslog reads the pattern as POSIX does.
    found = subprocess.run(
        ["grep", "-E", "-e", pattern], input="\n".join(CASES[name]), capture_output=True, text=True, check=False
    )
    assert found.stdout.splitlines() == [text for text, finds in CASES[name].items() if finds], found.stderr


def test_only_the_name_of_an_exception_is_kept() -> None:
    found = re.search(engine_log.EXCEPTION, "openai_harmony.HarmonyError: a prompt")
    assert found is not None and found[1] == "openai_harmony.HarmonyError"


def test_quotes_and_backslashes_are_escaped() -> None:
    """In single quotes, rsyslog needs a backslash before a backslash and before a single quote."""
    assert engine_log.quoted(r"it's \[") == r"'it\'s \\['"
