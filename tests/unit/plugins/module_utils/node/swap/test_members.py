# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases and moves of followers, and the leader's waits. test_gang.py has whole swaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Move, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import members
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import StepFailed
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..gang.world import NEW, OLD, gang

BOTH = f"12:{NEW[:12]} 11:{OLD[:12]}"
SWAP = Swap(1, 2, "run", "2026-11-26T06:00:00Z", step=swaps.STAGED, gang=True)


def follower(**more: Any) -> MemberState:
    values = {"active": 11, "current": 11, "desired": 12, "releases": BOTH, **more}
    return MemberState("gpu-1", 1, "10.0.0.2", values.pop("state", gangs.SERVING), values.pop("detail", ""), **values)


def state(*followers: MemberState, phase: str = gangs.SERVING) -> GangState:
    leader = MemberState("gpu-0", 0, "10.0.0.1", phase)
    return GangState("big", 0, 3, phase, "2026-11-26T06:00:00Z", members=(leader, *followers))


def release(number: int, digest: str, **more: Any) -> Release:
    instance = Instance(name="big", model="tiny-a", port=5010, accelerator="cpu")
    made = render(instance, [], StoredModel("/m", "r"), "i", Settings(), number=number).release
    return replace(made, gang=replace(gang(0, digest=digest), **more))


@pytest.mark.parametrize(
    ("digest", "more", "number"),
    [
        (NEW, {}, 12),
        (OLD, {}, 11),
        ("c" * 64, {}, None),
        (NEW, {"releases": ""}, None),
        (NEW, {"releases": "broken x:y"}, None),
        (OLD, {"desired": 13, "releases": f"13:{OLD[:12]} {BOTH}"}, 13),
        (OLD, {"releases": f"14:{OLD[:12]} {BOTH}"}, 11),
        (OLD, {"active": 12, "releases": f"14:{OLD[:12]} {BOTH}"}, 14),
    ],
)
def test_the_release_of_a_follower_is_chosen_by_its_digest(
    digest: str, more: dict[str, Any], number: int | None
) -> None:
    assert members.choose(follower(**more), digest) == number


def test_all_followers_must_keep_the_target() -> None:
    assert members.moves(gang(0, digest=NEW), state(follower())) == ({"gpu-1": Move(11, 12)}, [])
    found, problems = members.moves(gang(0, 3, digest="c" * 64), state(follower()))
    assert found == {} and len(problems) == 2
    assert problems[0].startswith("gpu-1 has no release of big with the gang digest cccccccccccc: baremetal.inference")
    assert problems[1] == "gpu-2 does not take part (unknown): start vllm@big there"


@pytest.mark.parametrize(("gone", "why"), [({"state": gangs.MISSING, "detail": "was silent for 10 s"}, "was silent")])
def test_a_missing_follower_is_a_problem(gone: dict[str, Any], why: str) -> None:
    _found, problems = members.moves(gang(0, digest=NEW), state(follower(**gone)))
    assert why in problems[0]


@pytest.mark.parametrize("found", [None, state(follower(), phase=gangs.STOPPED)])
def test_a_gang_that_does_not_run_cannot_be_asked(found: GangState | None) -> None:
    moves, (problem,) = members.moves(gang(0), found)
    assert moves == {} and problem.startswith("big does not run on gpu-0, so its other members cannot be asked")


def test_a_swap_is_due_if_a_follower_must_move_or_mark() -> None:
    assert not members.due(gang(0), None)
    assert not members.due(gang(0, digest=OLD), state(follower()))
    assert members.due(gang(0, digest=OLD), state(follower(current=12)))
    assert members.due(gang(0, digest=NEW), state(follower()))


def test_followers_that_have_not_marked_their_release_are_behind() -> None:
    swap = replace(SWAP, moves={"gpu-1": Move(11, 12)}, touched=True)
    assert members.behind(swap, 2, state(follower(current=12))) == []
    assert members.behind(swap, 2, state(follower())) == ["gpu-1 has not marked release 12"]
    assert members.behind(swap, 1, state(follower())) == []
    assert members.behind(swap, 2, None) == ["gpu-1 does not take part"]
    assert members.behind(swap, 2, state(follower(state=gangs.MISSING))) == ["gpu-1 does not take part"]


def test_a_target_that_changes_the_gang_port_or_makes_the_instance_a_gang_cannot_be_reached() -> None:
    assert members.unlike(None, release(2, NEW)) == ""
    assert members.unlike(release(1, OLD), release(2, NEW, rendezvous_port=29511)) == ""
    assert "release 2 of big has other nodes" in members.unlike(release(1, OLD), release(2, NEW, gang_port=5111))
    assert "release 2 of big has other nodes" in members.unlike(replace(release(1, OLD), gang=None), release(2, NEW))


# The steps.


class Traffic:
    """Time that passes only by sleeping. `sleeps` is called at each sleep."""

    def __init__(self, sleeps: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._sleeps = sleeps

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._sleeps()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    for number, digest in ((1, OLD), (2, NEW)):
        text = release(number, digest).to_json()
        files.write(made.release("big", number) / releases.RELEASE_FILE, text)
    return made


def node(paths: Paths, sleeps: Callable[[], None] = lambda: None) -> Any:
    return SimpleNamespace(paths=paths, name="big", traffic=Traffic(sleeps))


def write(paths: Paths, found: GangState) -> None:
    files.write_json(paths.gang("big"), found.to_json())


def test_the_release_numbers_of_followers_are_recorded(paths: Paths) -> None:
    write(paths, state(follower()))
    assert members.staged(node(paths), SWAP) == {"moves": {"gpu-1": Move(11, 12)}}


def test_a_follower_without_the_target_fails_the_first_step(paths: Paths) -> None:
    write(paths, state(follower(releases=f"11:{OLD[:12]}")))
    with pytest.raises(StepFailed, match="gpu-1 has no release of big with the gang digest bbbbbbbbbbbb"):
        members.staged(node(paths), SWAP)


def test_the_step_waits_for_a_member_that_is_missing_for_a_moment(paths: Paths) -> None:
    write(paths, state(follower(state=gangs.MISSING)))
    made = node(paths, lambda: write(paths, state(follower())))
    assert members.staged(made, SWAP)["moves"] and 0 < made.traffic.now < members.STAGE_SECONDS


def test_a_swap_after_a_stuck_swap_needs_no_supervisor(paths: Paths) -> None:
    touched = replace(SWAP, touched=True)
    assert members.staged(node(paths), touched) == {"moves": {}}
    known = {"gpu-1": Move(11, 12)}
    write(paths, state(follower(active=12)))
    assert members.staged(node(paths), replace(touched, moves=known)) == {"moves": known}


def test_the_leader_waits_for_the_marks_of_its_followers(paths: Paths) -> None:
    swap = replace(SWAP, step=swaps.MEMBERS, moves={"gpu-1": Move(11, 12)}, touched=True)
    write(paths, state(follower()))
    marks = node(paths, lambda: write(paths, state(follower(current=12))))
    assert members.prove(marks, swap) == {} and marks.traffic.now > 0
    write(paths, state(follower()))
    late = node(paths)
    with pytest.raises(StepFailed, match="gpu-1 has not marked release 12"):
        members.prove(late, swap)
    assert members.PROVE_SECONDS <= late.traffic.now < members.PROVE_SECONDS + 1


def test_only_a_gang_that_waits_has_absent_members(paths: Paths) -> None:
    assert members.absent(node(paths)) == []
    away = follower(state=gangs.MISSING, detail="was silent for 10 s")
    write(paths, state(away, phase=gangs.WAITING))
    assert members.absent(node(paths)) == ["gpu-1 (was silent for 10 s)"]
    write(paths, state(away, phase=gangs.ENDED))
    assert members.absent(node(paths)) == []
