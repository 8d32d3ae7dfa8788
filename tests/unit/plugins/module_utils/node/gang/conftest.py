# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a gang for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang

from ....ports import free_port
from ...conftest import Starter
from .machines import Unit, members


@pytest.fixture
def make_gang(starter: Starter) -> Iterator[Callable[..., list[Unit]]]:
    """Makes the units of a gang, leader first. None is started."""
    made: list[Unit] = []
    directories: list[Path] = []

    def make(size: int = 2, **engine: Any) -> list[Unit]:
        port, gang_port = free_port(), free_port()
        for rank in range(size):
            gang = Gang("big", rank, members(size), gang_port, 29510, "a" * 64)
            # A short path, since sockets lie in the directory.
            directories.append(Path(tempfile.mkdtemp(prefix="gang-")))
            made.append(Unit(directories[-1], starter, gang, port, engine=engine))
        return made

    yield make
    for unit in made:
        unit.close()
    for directory in directories:
        shutil.rmtree(directory)
