# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a configuration is still as Debian's package brought it. Private to the collection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

Run = Callable[[Sequence[str]], tuple[int, str, str]]
"""Exit code, output and errors of a command."""


def pristine(run: Run, package: str, path: Path) -> bool:
    """Whether dpkg knows a file with just this content as a package's own."""
    _code, shown, _words = run(["dpkg-query", "--show", "--showformat=${Conffiles}", package])
    checksum = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return f"{path} {checksum}" in shown
