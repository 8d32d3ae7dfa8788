# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a unit that may change without another release, and the id of a release."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import unit_text
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    Beside,
    Rendered,
    Settings,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

WARM_UP = ({"prompt": "Hello"},)
# Arguments that look like those parts of a unit that are left out of the id.
ARGUMENTS = [
    "--release 7",
    "--memory=64g",
    "--label=inference.release=7",
    "TimeoutStartSec=7",
    "a\n--release 7\nTimeoutStartSec=7",
]


def rendered(number: int, settings: Settings, beside: Beside) -> Rendered:
    instance = Instance("main", "a", 5005, accelerator="cpu")
    return render(instance, ARGUMENTS, StoredModel("/m/a", "r"), "image", settings, beside=beside, number=number)


@pytest.mark.parametrize("number", [1, 7, 64, 5005])
@pytest.mark.parametrize("settings", [Settings(), Settings(memory="48g", environment={"TOKEN": "s3cret"})])
@pytest.mark.parametrize("beside", [Beside(), Beside(memory_limit="64g", warm_up=WARM_UP, read_only=True)])
def test_the_id_follows_from_a_kept_release(number: int, settings: Settings, beside: Beside) -> None:
    made = rendered(number, settings, beside)
    kept = made.release
    base = unit_text.unnumbered(made.unit, number, kept.memory_limit, read_only=kept.read_only)
    assert unit_text.identity(base, made.environment, kept.revision, kept.warm_up) == kept.id
    other = dataclasses.replace(settings, address="10.0.0.9")
    assert unit_text.identity(base, made.environment, kept.revision, ()) != rendered(number, other, beside).release.id


def test_only_the_timeout_of_the_unit_changes() -> None:
    unit = rendered(7, Settings(start_timeout=600), Beside()).unit
    first = unit_text.with_timeout(unit, unit_text.FIRST_TIMEOUT)
    old, new = (set(text.splitlines()) for text in (first, unit))
    assert old - new == {"TimeoutStartSec=120"} and new - old == {"TimeoutStartSec=750"}


def test_an_engine_may_load_as_long_as_its_supervisor_allows() -> None:
    assert unit_text.start_timeout(1800, gang=False) == 1950
    assert unit_text.start_timeout(1800, gang=True) == "infinity"
