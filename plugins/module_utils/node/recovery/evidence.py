# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps evidence of an engine before each step of recovery. Private to the collection.

Masks secrets and leaves prompts out. Keeps the evidence of the last few steps.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ...core import files
from ...core.commands import NOT_INSTALLED, Outcome
from ...core.paths import Paths, journal_tag, unit_name
from ...engine import environment
from ...engine.listeners import PROC, pid_namespace
from ...engine.state.drains import format_time
from ...hardware import kernel_log
from .. import redaction

Run = Callable[[Sequence[str], float], Outcome]

TOOL_TIMEOUT = 15.0
"""Limit for a program, in seconds. The step of recovery waits for the program."""

LOG_LINES = 500
KERNEL_LINES = 400

LARGEST = 1 << 20
"""How many of the last characters of a file to keep."""


def capture(paths: Paths, name: str, now: datetime, pid: int | None, kept: int, run: Run, root: Path) -> Path:
    """Write the evidence of an instance into a new directory, and remove the oldest evidence.

    `pid` is the first process of the container. Raises OSError.
    """
    directory = paths.evidence(name) / format_time(now).replace(":", "")
    secrets = environment.secrets(environment.read(paths, name))
    sources: dict[str, Callable[[], str]] = {
        "engine.log": lambda: _journal(run, "-t", journal_tag(name)),
        "unit.log": lambda: _journal(run, "-u", unit_name(name)),
        "unit.txt": lambda: _tool(run, "systemctl", "show", unit_name(name)),
        "processes.txt": lambda: processes(pid),
        "nvidia-smi.txt": lambda: _tool(run, "nvidia-smi", "-q"),
        "kernel.log": lambda: "\n".join((kernel_log.read(root, 5.0) or "").splitlines()[-KERNEL_LINES:]),
        "deaths.json": lambda: files.text(paths.deaths(name)) or "",
        "probe.json": lambda: paths.probe(name).read_text(encoding="utf-8", errors="replace"),
    }
    for file, source in sources.items():
        try:
            text = source()
        except OSError as error:
            text = f"(cannot be read: {error})"
        if text:
            files.write(directory / file, redaction.text(text, secrets)[-LARGEST:], 0o600)
    _rotate(paths.evidence(name), kept)
    return directory


def processes(pid: int | None, proc: Path = PROC) -> str:
    """State and kernel function of every process of a container. T: stopped; D: waits in the kernel for a device."""
    namespace = pid_namespace(pid, proc) if pid else None
    if namespace is None:
        return ""
    lines = ["PID STATE WAITS-IN COMMAND"]
    for directory in sorted(proc.iterdir(), key=lambda path: (len(path.name), path.name)):
        if not directory.name.isdigit() or pid_namespace(int(directory.name), proc) != namespace:
            continue
        with contextlib.suppress(OSError):
            status = dict(
                line.partition(":")[::2] for line in (directory / "status").read_text(errors="replace").splitlines()
            )
            wchan = (directory / "wchan").read_text(errors="replace").strip() or "-"
            state = status.get("State", "?").split()[0]
            lines.append(f"{directory.name} {state} {wchan} {status.get('Name', '?').strip()}")
    return "\n".join(lines)


def _journal(run: Run, option: str, value: str) -> str:
    return _tool(
        run, "journalctl", "--quiet", "--no-pager", "--output=short-iso", f"--lines={LOG_LINES}", option, value
    )


def _tool(run: Run, *command: str) -> str:
    outcome = run(command, TOOL_TIMEOUT)
    if outcome.failure == NOT_INSTALLED:
        return ""
    return f"{outcome.stdout}{outcome.stderr}{outcome.message}"


def _rotate(directory: Path, kept: int) -> None:
    for old in sorted(path for path in directory.iterdir() if path.is_dir())[: -max(kept, 1)]:
        shutil.rmtree(old, ignore_errors=True)
