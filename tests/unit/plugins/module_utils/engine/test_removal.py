# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of an instance from a node."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    releases,
)

from .conftest import written


def fill(paths: Paths, name: str) -> None:
    """Everything that may be kept of an instance."""
    for path in (*removal.traces(paths, name), paths.probe(name), paths.gateway_answers(name), paths.drain(name)):
        if not path.exists():
            files.write(path, "x")
    for directory in removal.directories(paths, name):
        files.write(directory / "1/engine.log", "x")


def test_nothing_of_an_instance_stays_and_other_instances_do(paths: Paths, calls: list[tuple[str, ...]]) -> None:
    fill(paths, "main")
    assert removal.remove(paths, "main", check=True) is True
    assert calls == [] and paths.unit("main").exists()
    assert removal.remove(paths, "main", check=False) is True
    assert not [path for path in written(paths.root) if "main" in path]
    assert paths.unit("other").exists() and releases.names(paths) == ["other"]
    unit = "vllm@main.service"
    assert calls == [("stop", unit), ("disable", unit), ("reset-failed", unit), ("daemon-reload",)]
    assert removal.remove(paths, "main", check=False) is False


def test_the_declaration_goes_before_the_unit(
    paths: Paths, calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that is missing although the instance is declared counts as a dead engine (probe/health.py)."""
    gone: list[str] = []
    monkeypatch.setattr(removal.files, "write", lambda path, _text: gone.append(str(path)))
    removal.remove(paths, "main", check=False)
    assert gone.index(str(paths.instance("main"))) < gone.index(str(paths.unit("main")))


@pytest.mark.parametrize("trace", ["unit", "drain", "releases", "evidence"])
def test_a_removal_that_was_cut_off_is_finished_by_the_next(
    paths: Paths, calls: list[tuple[str, ...]], trace: str
) -> None:
    removal.remove(paths, "main", check=False)
    path = getattr(paths, trace)("main")
    files.write(path / "1/x" if trace in ("releases", "evidence") else path, "x")
    assert removal.remove(paths, "main", check=False) is True
    assert not path.exists()


def test_entries_that_no_instance_needs_are_removed_from_the_model_registry(
    paths: Paths, calls: list[tuple[str, ...]]
) -> None:
    assert removal.forget_models(paths, ["main"], check=True) == ["main-base", "main-model"]
    removal.remove(paths, "main", check=False)
    assert removal.forget_models(paths, ["main"], check=False) == ["main-base", "main-model"]
    assert list(files.read_json(paths.registry)["models"]) == ["other-model"]
    assert removal.forget_models(paths, ["main"], check=False) == []
    # With a damaged state, the needs of its instance are unknown, so no entry is removed.
    files.write_json(paths.instance("other"), [])
    with pytest.raises(ValueError, match=f"{paths.instance('other')} is damaged: baremetal.inference.site"):
        removal.forget_models(paths, [], check=False)
    files.write_json(paths.registry, {"models": ["other-model"]})
    assert removal.forget_models(paths, [], check=False) == []
