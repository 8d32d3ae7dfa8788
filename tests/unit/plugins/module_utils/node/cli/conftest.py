# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls commands of `inferctl` on a node with two instances, whose engines answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import observation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import entry

from ...conftest import stage
from ...http_engine import Engine
from ..test_prober import Unit

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., tuple[int, Any]]


@pytest.fixture
def engines() -> Iterator[dict[str, Engine]]:
    engines = {name: Engine(name) for name in ("main", "side")}
    yield engines
    for engine in engines.values():
        engine.close()


@pytest.fixture
def unit() -> Unit:
    unit = Unit()
    unit.properties |= {"ActiveEnterTimestamp": "@1767225600", "InactiveExitTimestamp": "@1767225000"}
    return unit


@pytest.fixture
def paths(tmp_path: Path, engines: dict[str, Engine], unit: Unit, monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path)
    for name, engine in engines.items():
        stage(paths, name, engine.port)
        files.write_json(paths.instance(name), {"schema": 1, "release": 1})
        releases.activate(paths, name, 1)
        releases.commit(paths, name, 1)
    monkeypatch.setattr(systemd, "show", lambda names, properties: {name: dict(unit.properties) for name in names})
    monkeypatch.setattr(observation, "SCRAPE_AFTER", 0.05)
    monkeypatch.setattr(observation, "SCRAPE_LIMIT", 1.0)
    # No command writes to the journal of the machine that runs the tests.
    monkeypatch.setattr(journal, "SOCKET", tmp_path / "journal")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr("socket.gethostname", lambda: "node1")
    return paths


@pytest.fixture
def run(paths: Paths, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call a command: its exit code, what it printed, its errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = entry.main(list(arguments), paths)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def run_json(run: Run) -> RunJson:
    def call(*arguments: str) -> tuple[int, Any]:
        code, output, _errors = run(*arguments, "--json")
        document = json.loads(output)
        assert document["schema"] == 1
        return code, document

    return call
