# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an engine's image for facts, and writes sources of the collection from them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# By path: the unit tests of other ansible-core versions run in environments without ruff.
RUFF = ROOT / ".cache/venv/bin/ruff"


def lines(image: str, program: Path, *arguments: str, errors: int | None = None) -> list[str]:
    """The lines that a program prints inside an image, which must be on this machine. Raises CalledProcessError.

    The container has neither network nor privileges. `errors`: subprocess.DEVNULL hides the program's error output.
    """
    argv = [
        *("docker", "run", "--rm", "--interactive", "--pull", "never", "--network", "none", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--entrypoint", "python3", image, "-", *arguments),
    ]
    result = subprocess.run(
        argv, input=program.read_text(), stdout=subprocess.PIPE, stderr=errors, text=True, check=True
    )
    return result.stdout.splitlines()


def ask(image: str, program: Path) -> dict[str, Any]:
    """The JSON object that a program prints as its last line: plugins of the engine may print other lines before.

    Raises CalledProcessError.
    """
    found: dict[str, Any] = json.loads(lines(image, program)[-1])
    return found


def formatted(source: str, path: Path) -> str:
    """The text of the source at a path, formatted like any other source. Raises CalledProcessError."""
    argv = [str(RUFF), "format", "--quiet", "--stdin-filename", str(path), "-"]
    return subprocess.run(argv, input=source, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout


def write(path: Path, text: str) -> str:
    """Write a source. Returns `unchanged` or `written`."""
    old = path.read_text() if path.exists() else ""
    path.write_text(text)
    return "unchanged" if text == old else "written"
