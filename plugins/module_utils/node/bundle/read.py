# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the sources of a bundle - programs, files and NVIDIA's own report - and masks secrets.
Private to the collection."""

from __future__ import annotations

import gzip
import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ...core.commands import NOT_INSTALLED, Outcome
from ...core.paths import Paths
from ...engine import environment
from ...hardware import kernel_log
from .. import redaction
from ..recovery import settings
from .item import Absent, Incomplete, Item

Run = Callable[[Sequence[str], float], Outcome]

TOOL_LIMIT = 30.0
"""Limit for a program, in seconds. nvidia-smi -q takes 3 s with 8 GPUs and without persistence mode."""

GRACE = 30.0
"""Seconds in addition to a program's limit: for its end after it is killed, and for masking its output."""

LARGEST = 8 << 20
"""How many of the last bytes of a file to take."""

REPORT = "nvidia-bug-report.sh"

REPORT_LIMIT = 300.0
"""Limit for NVIDIA's report, in seconds. It takes two minutes with eight GPUs, and hangs if a driver hangs."""

REPORT_LARGEST = 64 << 20
"""How many of the first bytes of the unpacked report to keep."""

REPORT_MASKING = 120.0
"""Seconds for masking the report."""


def secrets(paths: Paths) -> list[str]:
    """The secrets of the node: in environment files, with those of all releases and those that recovery has put aside;
    addresses of alerts; tokens of hubs. Raises nothing: a file that cannot be read adds none."""
    found: set[str] = set()
    for path in (
        *paths.env("").parent.glob("*.env"),
        *paths.all_releases.glob("*/*/*.env"),
        *paths.recovery.glob("aside/*/*.env"),
    ):
        try:
            found.update(environment.secrets(environment.read_file(path)))
        except (OSError, ValueError):
            continue
    try:
        channels = settings.read(paths)
        found.update([channels.webhook, channels.alertmanager] if channels else [])
    except (OSError, ValueError, TypeError):
        pass
    for path in paths.hub_token("").parent.glob("hub-token-*"):
        try:
            found.add(path.read_text(encoding="utf-8").strip())
        except (OSError, ValueError):
            continue
    return sorted(filter(None, found))


class Reader:
    """Makes items of programs and files. `hidden` are secrets to mask by their values."""

    def __init__(self, run: Run, hidden: Sequence[str]) -> None:
        self._run = run
        self._hidden = hidden

    def tool(self, file: str, *command: str, limit: float = TOOL_LIMIT, optional: bool = False) -> Item:
        """The output of a program. `optional` means that the program fails if it has nothing to report."""
        return Item(file, " ".join(command), lambda: self._output(command, limit, optional), limit + GRACE)

    def _output(self, command: Sequence[str], limit: float, optional: bool) -> str:
        outcome = self._run(command, limit)
        if outcome.failure == NOT_INSTALLED:
            raise Absent(outcome.message)
        said = self._clean(outcome.stdout)
        if outcome.failure:
            raise Incomplete(outcome.message, said)
        if outcome.code:
            reason = f"exit status {outcome.code}: {self._clean(outcome.stderr).strip()}"
            raise Absent(reason) if optional and not said else Incomplete(reason, said)
        return said + self._clean(outcome.stderr)

    def file(self, file: str, path: Path) -> Item:
        """A file, or its last part if it is long. Of an environment file, only the names of variables."""
        return Item(file, str(path), lambda: self._read(path), TOOL_LIMIT)

    def _read(self, path: Path) -> str:
        try:
            with path.open("rb") as handle:
                left_out = max(0, path.stat().st_size - LARGEST)
                handle.seek(left_out)
                text = handle.read(LARGEST).decode(errors="replace")
        except FileNotFoundError as error:
            raise Absent(f"there is no {path}") from error
        if left_out:
            # The first line may have lost its beginning, by which a secret is recognised.
            text = text.partition("\n")[2]
        if path.suffix == ".env":
            return redaction.variables(text)
        return redaction.document(text, self._hidden) if path.suffix == ".json" else self._clean(text)

    def value(self, file: str, source: str, make: Callable[[], Any], limit: float) -> Item:
        """A JSON document that our own code makes."""

        def document() -> str:
            return redaction.document(json.dumps(make(), default=str), self._hidden)

        return Item(file, source, document, limit)

    def kernel(self, file: str, root: Path) -> Item:
        """The kernel's log since boot."""

        def log() -> str:
            text = kernel_log.read(root, TOOL_LIMIT)
            if text is None:
                raise Incomplete("the kernel's log cannot be read")
            return self._clean(text)

        return Item(file, "/dev/kmsg, or /var/log/kern.log", log, TOOL_LIMIT + GRACE)

    def report(self, file: str) -> Item:
        """NVIDIA's own report, which an RMA requires. It quotes the journal, so it is masked, too."""
        return Item(file, REPORT, self._report, REPORT_LIMIT + REPORT_MASKING)

    def _report(self) -> str:
        with tempfile.TemporaryDirectory(prefix="inferctl-") as directory:
            log = Path(directory, "nvidia-bug-report.log")
            outcome = self._run([REPORT, "--output-file", str(log)], REPORT_LIMIT)
            if outcome.failure == NOT_INSTALLED:
                raise Absent(outcome.message)
            # The program packs its report if gzip is installed. It leaves the report unpacked if it breaks off.
            written = _unpack((log.with_name(f"{log.name}.gz"), log))
        text = self._clean(written)
        if outcome.failure or outcome.code or not text:
            said = outcome.message or f"exit status {outcome.code}: {self._clean(outcome.stderr).strip()}"
            raise Incomplete(said, text)
        return text

    def _clean(self, text: str) -> str:
        return redaction.text(text, self._hidden)


def _unpack(candidates: Iterable[Path]) -> str:
    """The text of the first of these files that can be read, packed or not; empty if none can be read."""
    for path in candidates:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                text = stream.read(REPORT_LARGEST).decode(errors="replace")
                # The last line may have lost the end of a secret.
                return text if stream.read(1) == b"" else text.rpartition("\n")[0]
        except (OSError, EOFError, zlib.error):
            continue
    return ""
