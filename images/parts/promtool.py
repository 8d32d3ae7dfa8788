# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool, which checks rules and lets them fire in tests.

Installing its package would start a Prometheus on this machine, so the package is unpacked into the cache instead.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .tools import CACHE, BuildError, run, succeeds

PROGRAM = CACHE / "promtool"


def build() -> str:
    """Put promtool into the cache. Returns its path. Raises BuildError."""
    if not (PROGRAM.exists() and succeeds(str(PROGRAM), "--version")):
        installed = shutil.which("promtool")
        if installed:
            shutil.copy2(installed, PROGRAM)
        else:
            download()
    return str(PROGRAM)


def download() -> None:
    """Extract promtool from Debian's package. Raises BuildError."""
    if not shutil.which("apt-get"):
        raise BuildError(f"This machine has no apt-get to download promtool. Copy Prometheus' promtool to {PROGRAM}.")
    with tempfile.TemporaryDirectory(dir=CACHE) as directory:
        run(
            "apt-get",
            "download",
            "prometheus",
            advice="Run: sudo apt-get update. Then make setup again.",
            cwd=directory,
        )
        (package,) = Path(directory).glob("prometheus_*.deb")
        run("dpkg-deb", "--extract", str(package), directory)
        (Path(directory) / "usr/bin/promtool").replace(PROGRAM)
