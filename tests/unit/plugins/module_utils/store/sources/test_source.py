# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source that an entry of the model registry names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import (
    Source,
    load_sources,
    parse_source,
)


@pytest.mark.parametrize(
    ("text", "origin", "path"),
    [
        ("controller:/srv/m", "controller", "/srv/m"),
        ("controller:/srv/m/", "controller", "/srv/m"),
        ("/srv/./m", "node", "/srv/m"),
    ],
)
def test_a_directory_on_the_controller_or_the_node_is_a_source(text: str, origin: str, path: str) -> None:
    assert parse_source({"model": text}) == Source(origin, Path(path))


def test_a_model_of_a_hub_is_a_remote_source() -> None:
    entry = {"model": "Qwen/Qwen3-8B", "revision": "0123456789" * 4}
    source = parse_source(entry)
    assert (source.origin, str(source)) == ("remote", "Qwen/Qwen3-8B")


@pytest.mark.parametrize("text", ["", "plain", "ftp://example.com/m.tar", "controller:m", "./m", "~/m"])
def test_a_source_that_is_not_supported_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="controller:/absolute/path"):
        parse_source({"model": text})


def test_every_entry_without_a_usable_source_is_a_problem() -> None:
    models = {"good": {"model": "/m"}, "hub": {"model": "a/b"}, "none": {}, "odd": 5, "../up": {"model": "/m"}}
    sources, problems = load_sources(models)
    assert set(sources) == {"good"}
    assert [problem.where for problem in problems] == ["models.hub", "models.none", "models.odd", "models.../up"]
