# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether a configuration file is unchanged since its package was installed. Private to the collection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

Run = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a command, and returns exit code, stdout and stderr."""


def pristine(run: Run, package: str, path: Path) -> bool:
    """Whether a file has the content that dpkg has recorded for the package's configuration file."""
    _code, shown, _words = run(["dpkg-query", "--show", "--showformat=${Conffiles}", package])
    checksum = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return f"{path} {checksum}" in shown
