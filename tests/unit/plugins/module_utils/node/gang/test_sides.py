# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both sides of a gang, made from a node's files."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import Notifier
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, pins, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import Drain, parse_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Move, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.unit_text import CLEAN_UP
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang import sides
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import Prove
from ansible_collections.baremetal.inference.plugins.module_utils.node.supervisor import EngineError
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ...conftest import FakeDocker
from .world import gang


def release(model: str = "/m") -> Release:
    instance = Instance(name="big", model="tiny-a", port=5010, accelerator="cpu")
    made = render(instance, [], StoredModel(model, "r"), "i", Settings(drain_timeout=30), number=3).release
    return replace(made, gang=gang(0))


def test_the_leaders_drain_ends_by_itself_and_leaves_other_drains_alone(tmp_path: Path) -> None:
    paths, logged = Paths(tmp_path), list[str]()
    made = sides.leads(paths, release(), gang(0), Notifier({}), logged.append, lambda: False)
    made._drain("gpu-1 leaves")
    now = datetime.now(UTC)
    drain = drains.read(paths, "big", now)
    assert drain is not None and (drain.owner, drain.reason) == (drains.GANG, "gpu-1 leaves")
    assert drain.until is not None and now < parse_time(drain.until) < now + timedelta(minutes=10)
    made._undrain()
    assert drains.read(paths, "big", now) is None
    drains.drain(paths, ["big"], Drain("alice", "work", drains.format_time(now)))
    made._drain("gpu-1 leaves")
    made._undrain()
    kept = drains.read(paths, "big", now)
    assert kept is not None and kept.owner == "alice"
    assert not logged


def test_a_drain_that_cannot_be_written_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = list[str]()
    made = sides.leads(Paths(tmp_path), release(), gang(0), Notifier({}), logged.append, lambda: False)

    def full(*_given: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(drains.files, "write", full)
    monkeypatch.setattr(drains.files, "write_json", full)
    made._drain("gpu-1 leaves")
    made._undrain()
    assert [text.split(":")[0] for text in logged] == ["the drain cannot be recorded", "the drain cannot be removed"]


def test_a_follower_that_leaves_waits_for_less_time_than_systemd_gives_its_unit(tmp_path: Path) -> None:
    found = release()
    made = sides.follows(
        Paths(tmp_path), found, gang(1), Docker(tmp_path / "docker.sock"), Notifier({}), print, lambda: None
    )
    limit = found.drain_timeout + found.adapter.stop.kill_grace
    assert limit < made._leave_limit < limit + CLEAN_UP


def test_a_container_is_created_anew(docker: FakeDocker, tmp_path: Path) -> None:
    program, log = tmp_path / "docker", tmp_path / "log"
    program.write_text(f'#!/bin/sh\necho "$1 $2 $3" >{log}\n')
    program.chmod(0o755)
    (tmp_path / "config.json").touch()
    wanted, api = release(str(tmp_path)), Docker(docker.path)
    docker.images.add(wanted.image)
    docker.create("vllm-big")
    sides.create(wanted, api, str(program))
    assert docker.removed == ["vllm-big"]
    # Another process could remove the image between the check and the creation.
    assert log.read_text() == "create --pull=never --name=vllm-big\n"
    program.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    with pytest.raises(EngineError, match="cannot create the container vllm-big: no space left"):
        sides.create(wanted, api, str(program))
    docker.images.clear()
    with pytest.raises(EngineError, match="the image i is not on this node: run"):
        sides.create(wanted, api, str(program))
    docker.down()
    with pytest.raises(EngineError, match="cannot replace the container vllm-big"):
        sides.create(wanted, api, str(program))


SWAP = Swap(3, 4, "run", "2026-11-26T06:00:00Z", step=swaps.PROBE, gang=True, moves={"gpu-1": Move(11, 12)})


def test_followers_must_run_the_releases_that_a_swap_has_recorded(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert sides.numbers(paths, release(), gang(0)) == {}
    swaps.write(paths, "big", SWAP)
    assert sides.numbers(paths, release(), gang(0)) == {"gpu-1": 11}
    assert sides.numbers(paths, replace(release(), number=4), gang(0)) == {"gpu-1": 12}
    assert sides.numbers(paths, replace(release(), number=9), gang(0)) == {}


def test_followers_mark_a_release_when_the_release_of_the_leader_has_passed_all_checks(tmp_path: Path) -> None:
    paths, following = Paths(tmp_path), replace(release(), number=4)
    assert sides.proof(paths, following) is None
    swaps.write(paths, "big", SWAP)
    assert sides.proof(paths, following) is None
    swaps.write(paths, "big", replace(SWAP, step=swaps.MEMBERS, reason="a rollback by mira", back=True))
    assert sides.proof(paths, release()) is None, "another release"
    assert sides.proof(paths, following) == Prove("a rollback by mira", 1)
    swaps.write(paths, "big", replace(SWAP, step=swaps.MEMBERS, returning=True))
    assert sides.proof(paths, release()) == Prove("", 0)


def test_without_a_swap_followers_mark_and_pin_the_release_like_the_leader(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.releases("big").mkdir(parents=True)
    files.link(paths.current("big"), "3")
    assert sides.proof(paths, release()) == Prove("", 0)
    pin = pins.Pin(3, 5, "a rollback", "2026-11-26T06:00:00Z", True)
    files.write_json(paths.pin("big"), {"schema": 1, **asdict(pin)})
    assert sides.proof(paths, release()) == Prove("a rollback", 1)
