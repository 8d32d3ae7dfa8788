# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all unit tests."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

# `make setup` links the checkout there, so that the collection's own name resolves.
sys.path.insert(0, str(Path(__file__).parents[2] / ".cache"))

# For yaml.safe_load: libyaml parses the same in a tenth of the time.
if yaml.__with_libyaml__:
    yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[misc, assignment]

# Without a deadline: a busy machine is no failure. Before its first text, hypothesis makes a table: this takes seconds.
settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI finds an example that fails within a few runs. `make test-full` tries four times as many examples in a run.
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=25)
settings.load_profile("thorough")

SAMPLES = Path(os.environ["INFERENCE_SAMPLES"]) if os.environ.get("INFERENCE_SAMPLES") else None
"""Recordings of other people's machines, with the results that parsers must return (expected.json). The recordings
belong to these people, so they are no part of the repository."""


DOCKER = "ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api"


@dataclass(frozen=True)
class Recording:
    """The output of a tool on a real machine, or a directory of outputs, and the result that a parser must return."""

    name: str
    path: Path
    expected: Any
    synthetic: bool

    def text(self) -> str:
        return self.path.read_text(errors="replace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--newer-core", action="store_true", help="leave out tests marked `once`")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect tests without Python's garbage collector: the objects of the collected tests stay until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--newer-core"):
        return
    once = [item for item in items if item.get_closest_marker("once")]
    config.hook.pytest_deselected(items=once)
    items[:] = [item for item in items if not item.get_closest_marker("once")]


def is_quick(config: pytest.Config) -> bool:
    """Whether this run leaves out tests marked `full`, as CI does."""
    return str(config.getoption("markexpr")) == "not full"


@pytest.fixture(scope="session")
def quick(pytestconfig: pytest.Config) -> bool:
    """For tests that try many cases of one kind: whether some of the cases are enough."""
    return is_quick(pytestconfig)


def pytest_configure(config: pytest.Config) -> None:
    if is_quick(config):
        settings.load_profile("quick")
    # No test can clean the disk of this machine's own Docker.
    import_module(DOCKER).SOCKET = Path("/proc/none/docker.sock")  # type: ignore[attr-defined]
    config.addinivalue_line("markers", "recordings(category, …): run the test with each recording of these categories")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test marked with `recordings` runs once for each of these recordings, which is its argument `recording`."""
    marker = metafunc.definition.get_closest_marker("recordings")
    if marker is None:
        return
    found = []
    for name, entry in json.loads((SAMPLES / "expected.json").read_text()).items() if SAMPLES else ():
        if name.partition("/")[0] in marker.args:
            found.append(Recording(name, SAMPLES / name, entry["expected"], bool(entry["synthetic"])))
    assert found or not SAMPLES, f"{SAMPLES} holds no recording of {', '.join(marker.args)}"
    metafunc.parametrize("recording", found, ids=[recording.name for recording in found])


@pytest.fixture(scope="session")
def systemd_analyze() -> str:
    """The path of systemd-analyze. Without the program, tests fail: they are not skipped in silence."""
    found = shutil.which("systemd-analyze")
    if not found:
        pytest.fail("systemd-analyze is missing: run tests/tools/setup unit")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    where = SAMPLES or "none, because INFERENCE_SAMPLES is not set: the repository's own samples ran alone"
    terminalreporter.write_line(f"recordings of real machines: {where}")
