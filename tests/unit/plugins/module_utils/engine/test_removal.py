# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance leaves on a node: nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    install_state,
    releases,
)

from .conftest import written

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def fill(paths: Paths, name: str) -> None:
    """Everything that may be kept of an instance."""
    for path in (*removal.traces(paths, name), paths.probe(name), paths.drain(name)):
        if not path.exists():
            files.write(path, "x")
    for directory in removal.directories(paths, name):
        files.write(directory / "1/engine.log", "x")


def test_an_instance_leaves_nothing_and_others_stay(paths: Paths, calls: list[tuple[str, ...]]) -> None:
    fill(paths, "main")
    assert removal.remove(paths, "main", check=True) is True
    assert calls == [] and paths.unit("main").exists()
    assert removal.remove(paths, "main", check=False) is True
    assert not [path for path in written(paths.root) if "main" in path]
    assert paths.unit("other").exists() and releases.names(paths) == ["other"]
    unit = "vllm@main.service"
    assert calls == [("stop", unit), ("disable", unit), ("reset-failed", unit), ("daemon-reload",)]
    assert removal.remove(paths, "main", check=False) is False


@pytest.mark.parametrize("trace", ["unit", "drain", "releases", "evidence"])
def test_what_was_cut_off_is_gone_on_with(paths: Paths, calls: list[tuple[str, ...]], trace: str) -> None:
    removal.remove(paths, "main", check=False)
    path = getattr(paths, trace)("main")
    files.write(path / "1/x" if trace in ("releases", "evidence") else path, "x")
    assert removal.remove(paths, "main", check=False) is True
    assert not path.exists()


def test_the_registry_forgets_what_nobody_serves(paths: Paths, calls: list[tuple[str, ...]]) -> None:
    assert removal.forget_models(paths, ["main"], check=True) == ["main-base", "main-model"]
    removal.remove(paths, "main", check=False)
    assert removal.forget_models(paths, ["main"], check=False) == ["main-base", "main-model"]
    assert list(files.read_json(paths.registry)["models"]) == ["other-model"]
    assert removal.forget_models(paths, ["main"], check=False) == []
    # A damaged state does not tell what its instance needs, so no entry goes.
    files.write_json(paths.instance("other"), [])
    with pytest.raises(ValueError, match=f"{paths.instance('other')} is damaged: baremetal.inference.site"):
        removal.forget_models(paths, [], check=False)
    files.write_json(paths.registry, {"models": ["other-model"]})
    assert removal.forget_models(paths, [], check=False) == []


def test_how_an_instance_stands(paths: Paths, calls: list[tuple[str, ...]]) -> None:
    drains.drain(paths, ["main"], drains.Drain("mira", "new disk", drains.format_time(NOW)))
    found = install_state.of(paths, "main", NOW)
    assert (found.model, found.release, found.serving, found.running) == ("tiny-a", 1, False, False)
    assert (found.drained_by, found.drain_reason, found.swapping) == ("mira", "new disk", False)
    (paths.release("main", 1) / releases.RELEASE_FILE).write_text("{")
    assert install_state.of(paths, "main", NOW).model == "main-model"
