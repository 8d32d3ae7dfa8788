# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks read: a root of files, and tools that answer from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check, driver, gpus
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host, Thresholds

from ..conftest import install, missing, plug, write


def host(root: Path, answers: Mapping[str, Outcome] | None = None, **thresholds: Any) -> Host:
    """A host whose tools answer by their command line or their name; a tool without an answer is not installed."""

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        known = answers or {}
        return known.get(" ".join(command)) or known.get(command[0]) or missing(command[0])

    return Host(Paths(root), run, Docker(root / "docker.sock", timeout=1), Thresholds(**thresholds))


def serve(root: Path) -> Paths:
    """An instance on the CPU with its files in place, proven and declared."""
    paths = Paths(root)
    install(paths)
    files.write_json(paths.instance("main"), {"release": 1})
    files.write_json(paths.registry, {"models": {}})
    return paths


class Machine:
    """A root with GPUs on its bus, and tools that answer from a table."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.answers: dict[str, Outcome] = {}

    def plug(self, address: str) -> None:
        plug(self.root, address)

    def write(self, path: str, text: str) -> None:
        write(self.root / path, text)

    def says(self, text: str) -> None:
        """What nvidia-smi reports."""
        self.answers["nvidia-smi -q -x"] = Outcome(0, text)

    def host(self) -> Host:
        return host(self.root, self.answers)

    def check(self) -> dict[str, check.Result]:
        """The results of all checks of GPUs and driver."""
        return {result.name: result for result in check.run([*gpus.CHECKS, *driver.CHECKS], self.host())}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
