# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with two instances, and a fake of its systemd, for tests of removals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases

from ..conftest import stage


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    for number, name in enumerate(("main", "other")):
        stage(paths, name, 5005 + number)
        releases.activate(paths, name, 1)
        files.write_json(paths.instance(name), {"schema": 1, "model": f"{name}-model", "release": 1})
    models = {"main-base": {"model": "/a"}, "main-model": {"base": "main-base"}, "other-model": {"model": "/b"}}
    files.write_json(paths.registry, {"schema": 1, "models": models})
    return paths


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The calls of systemctl."""
    made: list[tuple[str, ...]] = []

    def systemctl(*words: str) -> str:
        made.append(words)
        return ""

    def show(units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {"ActiveState": "failed"} for unit in units}

    monkeypatch.setattr(systemd, "systemctl", systemctl)
    monkeypatch.setattr(systemd, "show", show)
    monkeypatch.setattr(removal, "FORGET_SECONDS", 0)
    return made


def written(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
