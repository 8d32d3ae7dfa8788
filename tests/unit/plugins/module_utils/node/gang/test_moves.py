# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A follower's releases on disk, and its moves from one to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import activation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import pins, releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import Move, Offers, Prove
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.moves import PAUSE, TRIES, Own
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from .world import NEW, OLD, gang

NAME = "big"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with two releases of a gang. Release 1 runs, and the inventory asks for release 2."""
    made = Paths(tmp_path)
    for digest in (OLD, NEW):
        stage(made, digest)
    releases.activate(made, NAME, 1)
    files.write_json(made.instance(NAME), {"release": 2})
    return made


def stage(paths: Paths, digest: str) -> None:
    instance = Instance(name=NAME, model="tiny-a", port=5010, accelerator="cpu")

    def rendered(number: int) -> Rendered:
        made = render(instance, [], StoredModel("/m", "r"), "i", Settings(), number=number)
        return replace(made, release=replace(made.release, gang=gang(1, digest=digest)), environment="A=1\n")

    releases.stage(paths, NAME, digest, rendered, lambda _words: None)


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands for systemd."""
    made: list[tuple[str, ...]] = []
    monkeypatch.setattr(systemd, "systemctl", lambda *words: made.append(words))
    return made


def own(paths: Paths, number: int = 1, clock: Clock | None = None) -> Own:
    return Own(paths, NAME, number, lambda _words: None, clock or Clock())


def test_the_releases_of_a_node_are_offered_newest_first(paths: Paths) -> None:
    assert own(paths).offers() == Offers(1, 0, 2, "2:bbbbbbbbbbbb 1:aaaaaaaaaaaa")


def test_a_damaged_release_is_not_offered(paths: Paths) -> None:
    (paths.release(NAME, 2) / releases.ENV_FILE).unlink()
    assert own(paths).offers().releases == "1:aaaaaaaaaaaa"


@pytest.mark.parametrize("number", [0, 2], ids=["by its digest", "by its number"])
def test_a_move_installs_the_release_and_restarts_the_unit(
    paths: Paths, ordered: list[tuple[str, ...]], number: int
) -> None:
    assert own(paths).move(Move(number, NEW)) == ""
    assert releases.active_number(paths, NAME) == 2
    assert ordered[-1] == ("restart", "--no-block", "vllm@big.service")
    assert ("stop", "vllm@big.service") not in ordered


@pytest.mark.parametrize("wanted", [Move(0, "c" * 64), Move(2, OLD), Move(9, NEW), Move(2, NEW[:12])])
def test_only_a_staged_release_with_the_whole_digest_is_installed(
    paths: Paths, ordered: list[tuple[str, ...]], wanted: Move
) -> None:
    assert "has no release with the gang digest" in own(paths).move(wanted)
    assert releases.active_number(paths, NAME) == 1 and ordered == []


def test_a_move_is_on_disk_before_it_is_made(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_arguments: object) -> None:
        assert files.read_json(paths.gang_move(NAME))["release"] == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(activation, "restart", dies)
    with pytest.raises(KeyboardInterrupt):
        own(paths).move(Move(2, NEW))
    assert own(paths, 1).unmoved() == "did not arrive at release 2"
    assert own(paths, 2).unmoved() == ""
    own(paths, 2).arrived()
    assert not paths.gang_move(NAME).exists()


def test_a_follower_that_moved_without_success_tries_once_a_minute(
    paths: Paths, ordered: list[tuple[str, ...]]
) -> None:
    clock = Clock()
    for _turn in range(TRIES):
        assert own(paths, clock=clock).move(Move(2, NEW)) == ""
    assert "tries again once a minute" in own(paths, clock=clock).move(Move(2, NEW))
    assert own(paths, clock=clock).move(Move(1, OLD)) == "", "another release is another move"
    clock.now += PAUSE
    for turn in range(TRIES):
        assert own(paths, clock=clock).move(Move(2, NEW)) == ""
        clock.now += PAUSE if turn >= TRIES - 1 else 0.0
    assert own(paths, clock=clock).move(Move(2, NEW)) == ""
    rare = "has moved 4 times to release 2, and tries again once a minute"
    assert own(paths, clock=clock).move(Move(2, NEW)) == rare
    assert len([words for words in ordered if words[0] == "restart"]) == 2 * TRIES + 2


def test_an_error_of_systemd_is_the_reason(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_words: str) -> None:
        raise systemd.SystemdError("no bus")

    monkeypatch.setattr(systemd, "systemctl", fails)
    assert own(paths).move(Move(2, NEW)) == "cannot move to release 2: no bus"


@pytest.mark.parametrize("text", ["[]", "{", '{"schema": 1, "release": 2}', '{"schema": 9}'])
def test_a_damaged_record_of_a_move_stops_nothing(paths: Paths, ordered: list[tuple[str, ...]], text: str) -> None:
    paths.gang_move(NAME).parent.mkdir(parents=True)
    paths.gang_move(NAME).write_text(text)
    assert own(paths).unmoved() == ""
    assert own(paths).move(Move(2, NEW)) == "" and ordered


def test_a_proven_release_is_marked_and_pinned_like_the_release_of_the_leader(paths: Paths) -> None:
    own(paths).prove(Prove("a rollback", 1))
    assert releases.current_number(paths, NAME) == 1
    pin = pins.read(paths, NAME)
    assert pin is not None and (pin.release, pin.instead_of, pin.reason, pin.back) == (1, 2, "a rollback", True)
    releases.activate(paths, NAME, 2)
    own(paths, 2).prove(Prove("", 0))
    assert own(paths).offers().current == 2 and pins.read(paths, NAME) is None


def test_a_mark_that_cannot_be_written_raises_nothing(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(releases, "commit", full)
    own(paths).prove(Prove("", 0))
    assert own(paths).offers().current == 0
