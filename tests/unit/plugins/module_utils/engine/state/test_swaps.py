# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a swap, and the report of its end."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms

NEVER = "2026-01-01T00:00:00Z"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def test_a_swap_is_recorded(paths: Paths) -> None:
    swap = swaps.Swap(1, 2, "a", NEVER)
    assert swaps.read(paths, "main") is None
    assert swaps.begin(paths, "main", swap) is True
    assert swaps.read(paths, "main") == swap
    assert swaps.end(paths, "main") is True
    assert swaps.end(paths, "main") is False


def test_a_swap_is_read_as_it_was_written(paths: Paths) -> None:
    swap = swaps.Swap(
        1,
        2,
        "a",
        NEVER,
        back=True,
        pin=False,
        reason="why",
        terms=Terms(drain_seconds=5),
        step=swaps.GATE,
        touched=True,
        closed_port=5005,
        notes={"way": "others"},
        words=("one", "two"),
        gang=True,
        moves={"gpu-1": swaps.Move(3, 4)},
    )
    swaps.write(paths, "main", swap)
    assert swaps.read(paths, "main") == swap and swaps.names(paths) == ["main"]


def test_a_swap_that_a_version_before_0_2_led_has_the_step_led(paths: Paths) -> None:
    files.write_json(paths.swap("main"), {"schema": 1, "origin": 1, "target": 2, "run_id": "a", "since": NEVER})
    found = swaps.read(paths, "main")
    assert found == swaps.Swap(1, 2, "a", NEVER) and found.step == swaps.LED and not found.gated


OTHER = "has other keys than this version writes"

TYPES = "has values of another type"

WHOLE = {**asdict(swaps.Swap(1, 2, "a", NEVER)), "schema": swaps.SCHEMA}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not JSON: Expecting value"),
        (files.to_json(WHOLE)[:100], "is not JSON: "),
        ("[]", "is no record of schema 2"),
        ("null", "is no record of schema 2"),
        (files.to_json({**WHOLE, "schema": 3}), "is no record of schema 2"),
        (files.to_json({"schema": 1, "origin": 1}), OTHER),
        (files.to_json({**WHOLE, "later": 1}), OTHER),
        (files.to_json({**WHOLE, "terms": None}), f"{TYPES}: terms)"),
        (files.to_json({**WHOLE, "words": None, "moves": []}), f"{TYPES}: words, moves)"),
        (files.to_json({**WHOLE, "target": "2"}), "has a release or a port that is no number"),
        (files.to_json({**WHOLE, "closed_port": [5005]}), "has a release or a port that is no number"),
        (files.to_json({**WHOLE, "step": "fly"}), "has no step that this version knows"),
        (files.to_json({**WHOLE, "step": []}), f"{TYPES}: step)"),
        (files.to_json({**WHOLE, "notes": None}), f"{TYPES}: notes)"),
        (files.to_json({**WHOLE, "tries": "1", "failure": None}), f"{TYPES}: failure, tries)"),
        (json.dumps({**WHOLE, "terms": {"drain_seconds": math.inf}}), "cannot convert float infinity to integer"),
    ],
    ids=[
        *("empty", "cut", "list", "null", "schema", "less", "more"),
        *("terms", "words", "target", "port", "step", "steps", "notes", "types", "endless"),
    ],
)
def test_a_damaged_record_counts_as_a_swap(paths: Paths, content: str, words: str) -> None:
    """The node must not go on as if nothing had happened: a drain or a closed gate may be left."""
    files.write_json(paths.swap("main"), WHOLE)
    assert swaps.read(paths, "main") == swaps.Swap(1, 2, "a", NEVER)
    files.write(paths.swap("main"), content)
    found = swaps.read(paths, "main")
    assert found and (found.step, found.origin, found.target, found.gated) == (swaps.DAMAGED, None, 0, False)
    assert found.failure.startswith(f"{paths.swap('main')} is damaged ({words}")
    assert found.failure.count(str(paths.swap("main"))) == 1 and found.since.endswith("Z")
    assert swaps.names(paths) == ["main"]
    paths.active("main").parent.mkdir(parents=True)
    files.link(paths.active("main"), "2")
    found = swaps.read(paths, "main")
    assert found and (found.origin, found.target) == (2, 2), "the swap leads to the installed release"


def test_a_record_that_cannot_be_read_is_a_swap(paths: Paths) -> None:
    paths.swap("main").mkdir(parents=True)
    found = swaps.read(paths, "main")
    assert found and found.step == swaps.DAMAGED and "Is a directory" in found.failure


def test_if_the_record_in_memory_is_damaged_the_record_on_disk_counts(paths: Paths) -> None:
    files.write(paths.swap_meanwhile("main"), "{")
    found = swaps.read(paths, "main")
    assert found and found.step == swaps.DAMAGED and str(paths.swap_meanwhile("main")) in found.failure
    files.write_json(paths.swap("main"), WHOLE)
    assert swaps.read(paths, "main") == swaps.Swap(1, 2, "a", NEVER)
    # The next record replaces the damaged one.
    swaps.write(paths, "main", swaps.Swap(1, 2, "a", NEVER, step=swaps.GATE))
    found = swaps.read(paths, "main")
    assert found and found.step == swaps.GATE and not paths.swap_meanwhile("main").exists()


def test_on_a_full_disk_the_step_is_kept_in_memory(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.write
    full = True

    def on_a_full_disk(path: Path, content: Any, mode: int = 0o644) -> bool:
        if full and content is not None and path.is_relative_to(paths.state):
            raise OSError(28, "No space left on device")
        return write(path, content, mode)

    before, after = (swaps.Swap(1, 2, "a", NEVER, step=step) for step in (swaps.GATE, swaps.STOP))
    swaps.begin(paths, "other", before)
    swaps.begin(paths, "main", before)
    monkeypatch.setattr(files, "write", on_a_full_disk)
    swaps.write(paths, "main", after)
    assert swaps.read(paths, "main") == after and paths.swap_meanwhile("main").exists()
    # Only the report is lost.
    assert swaps.end(paths, "main", swaps.Report(1, 2, "a", NEVER, NEVER, swaps.DONE)) is True
    assert swaps.read(paths, "main") is None and swaps.last(paths, "main") is None
    with pytest.raises(OSError, match="No space"):
        swaps.begin(paths, "main", before)
    full = False
    swaps.write(paths, "main", after)
    assert not paths.swap_meanwhile("main").exists() and swaps.names(paths) == ["main", "other"]


def test_a_step_that_neither_disk_nor_memory_takes_is_an_error(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="No space"):
        swaps.write(paths, "main", swaps.Swap(1, 2, "a", NEVER))


def test_the_report_of_a_swap_stays_until_the_next_swap_begins(paths: Paths) -> None:
    report = swaps.Report(
        1, 2, "a", NEVER, NEVER, swaps.RETURNED, "too slow", words=("one",), unheard=("gw1",), load_seconds=2.5
    )
    assert swaps.last(paths, "main") is None
    swaps.begin(paths, "main", swaps.Swap(1, 2, "a", NEVER))
    swaps.end(paths, "main", report)
    assert swaps.last(paths, "main") == report
    assert swaps.end(paths, "main") is False and swaps.last(paths, "main") == report
    swaps.begin(paths, "main", swaps.Swap(1, 2, "b", NEVER))
    assert swaps.last(paths, "main") is None
    for damaged in ("{", "[]", '{"schema": 2}', '{"schema": 1}'):
        files.write(paths.swap_report("main"), damaged)
        assert swaps.last(paths, "main") is None


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "1"},
        {"target": None},
        {"run_id": 7},
        {"outcome": "lost"},
        {"outcome": ["done"]},
        {"failure": None},
        {"words": [1]},
        {"behind": 3},
        {"load_seconds": "2"},
        {"pinned": 1},
        {"requests_meanwhile": "many"},
    ],
)
def test_a_report_with_a_value_of_another_type_counts_as_damaged(paths: Paths, change: dict[str, object]) -> None:
    swaps.end(paths, "main", swaps.Report(1, 2, "a", NEVER, NEVER, swaps.DONE, load_seconds=2))
    assert swaps.last(paths, "main")
    files.write_json(paths.swap_report("main"), {**files.read_json(paths.swap_report("main")), **change})
    assert swaps.last(paths, "main") is None


@pytest.mark.parametrize(
    ("step", "touched", "gated"),
    [
        (swaps.LED, True, False),
        (swaps.BEGUN, False, False),
        (swaps.DRAIN, False, False),
        # An engine that was stopped must pass the probe before clients reach it.
        (swaps.BEGUN, True, True),
        (swaps.BRIDGE, True, True),
        (swaps.DRAIN, True, True),
        (swaps.GATE, False, True),
        (swaps.STOP, True, True),
        (swaps.START, True, True),
        (swaps.PROBE, True, True),
        (swaps.ADMIT, True, False),
        (swaps.WATCH, True, False),
        (swaps.PROVE, True, False),
        (swaps.RELEASE, False, False),
        (swaps.UNBRIDGE, True, False),
        (swaps.STUCK, True, True),
    ],
)
def test_the_step_of_a_swap_decides_whether_the_gate_is_closed(step: str, touched: bool, gated: bool) -> None:
    assert swaps.Swap(1, 2, "a", NEVER, step=step, touched=touched, closed_port=5005).gated is gated
    assert not swaps.Swap(1, 2, "a", NEVER, step=step, touched=touched).gated


def test_a_swap_leads_to_its_target_and_a_return_to_its_origin() -> None:
    assert swaps.Swap(1, 2, "a", NEVER).release == 2
    assert swaps.Swap(1, 2, "a", NEVER, returning=True).release == 1
