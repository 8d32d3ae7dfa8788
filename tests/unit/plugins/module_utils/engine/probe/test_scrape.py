# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scrapes an engine's metrics: from an engine that answers, from one that hangs, and from a port without a listener."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import scrape
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases

from ...conftest import stage
from ...http_engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def read(engine: Engine, root: Path) -> str:
    paths = Paths(root)
    stage(paths, "main", engine.port)
    return scrape.scrape(paths, "main", releases.load(paths, "main", 1))


def test_the_metrics_of_an_engine_that_answers_are_read(engine: Engine, tmp_path: Path) -> None:
    assert read(engine, tmp_path).endswith("process_start_time_seconds 1.7e+09\n")


def test_an_engine_that_does_not_answer_has_no_metrics(engine: Engine, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(scrape, "SECONDS", 0.05)
    engine.frozen.set()
    assert read(engine, tmp_path) == ""


def test_a_port_without_a_listener_is_an_error(engine: Engine, tmp_path: Path) -> None:
    engine.close()
    with pytest.raises(ConnectionRefusedError):
        read(engine, tmp_path)
