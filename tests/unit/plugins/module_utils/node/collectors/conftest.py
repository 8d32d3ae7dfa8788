# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of files that the collectors read, and the output of a collector."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors.catalogue import COLLECTORS
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from ..conftest import install, missing, write

NOW = 1777636800.0


def declare(paths: Paths, accelerator: str = "nvidia", gpus: Sequence[str] = ("0",)) -> None:
    """An instance whose release 1 is installed, proven and wanted."""
    image = "registry.example.org/vllm@sha256:0123456789abcdef"
    install(paths, accelerator=accelerator, gpus=gpus, image=image, revision="ab12cd34ef56ab12")
    write(paths.instance("main"), json.dumps({"schema": 1, "release": 1}))


def collect(name: str, paths: Paths, answer: Outcome | None = None) -> str:
    """The metrics of a collector. `answer`: the answer of nvidia-smi; without, nvidia-smi is not installed."""

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        return answer if answer and command[0] == "nvidia-smi" else missing(command[0])

    page = catalogue.collect(COLLECTORS[name], Host(paths, run), now=lambda: NOW)
    assert not page.problem
    return page.text
