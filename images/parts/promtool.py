# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool, which checks rules and lets them fire in tests. Its package alone would start a Prometheus on this machine:
it is unpacked into the cache instead of installed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .tools import CACHE, BuildError, run, succeeds

PROGRAM = CACHE / "promtool"


def build() -> str:
    """Have promtool in the cache."""
    if not (PROGRAM.exists() and succeeds(str(PROGRAM), "--version")):
        installed = shutil.which("promtool")
        if installed:
            shutil.copy2(installed, PROGRAM)
        else:
            download()
    return str(PROGRAM)


def download() -> None:
    """Take it out of Debian's package."""
    if not shutil.which("apt-get"):
        raise BuildError(f"This machine has no apt-get. Put Prometheus' promtool there: {PROGRAM}")
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
