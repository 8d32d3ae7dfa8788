# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue that is chosen for a version, and its facts about each flag."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import Flag, choose


@pytest.mark.parametrize(
    ("wanted", "version", "exact"),
    [
        ("", "0.33.0", True),
        ("0.32.0", "0.32.0", True),
        ("v0.32.0+cpu", "0.32.0", True),
        ("0.32.0rc1", "0.32.0", False),
        ("0.32.1", "0.32.0", False),
        ("0.32", "0.32.0", False),
        ("0.33", "0.33.0", False),
        ("0.4.0", "0.32.0", False),
        ("1.0", "0.33.0", False),
        ("nightly", "0.33.0", False),
    ],
)
def test_the_catalogue_is_that_of_the_version_or_of_the_nearest_version(wanted: str, version: str, exact: bool) -> None:
    chosen = choose(wanted)
    assert (chosen.version, chosen.exact) == (version, exact)
    assert (chosen.note == "") is exact
    assert exact or (wanted in chosen.note and version in chosen.note)


def test_a_refusal_names_the_guessed_version_only_without_a_given_version() -> None:
    assert choose("0.32.0").guess == ""
    assert "0.33.0 is assumed: set engine_version" in choose("").guess


@pytest.mark.parametrize("known", [choose("0.32.0"), choose("0.33.0")], ids=lambda known: known.version)
def test_every_catalogue_is_complete(known: catalogue.Catalogue) -> None:
    assert len(known.flags) > 300
    assert catalogue.ANY not in {flag.type for flag in known.flags.values()}
    assert not set(known.aliases) & set(known.flags)
    assert not set(known.inverse) & set(known.flags)
    assert known.flag("gpu-memory-utilization") == Flag(
        "gpu-memory-utilization", catalogue.NUMBER, aliases=("device-memory-utilization",)
    )


def test_aliases_and_opposites_lead_to_their_flag() -> None:
    found = choose("0.33.0")
    assert found.aliases["tp"] == "tensor-parallel-size"
    assert found.inverse["no-enable-prefix-caching"] == "enable-prefix-caching"
    assert found.inverse["disable-prefix-caching"] == "enable-prefix-caching"
    assert "disable-prefix-caching" not in choose("0.32.0").inverse


def test_a_flag_has_the_facts_of_its_version() -> None:
    old, new = (choose(version).flag("spec-method") for version in ("0.32.0", "0.33.0"))
    assert ("medusa" in old.choices, "medusa" in new.choices) == (True, False)
    assert new.choices == tuple(sorted(new.choices))
    assert choose("0.33.0").flag("tool-strict-level").optional


def test_an_unknown_flag_takes_anything() -> None:
    assert choose("").flag("quite-new") == Flag("quite-new", catalogue.ANY)
