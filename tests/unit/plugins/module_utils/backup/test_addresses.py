# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of a snapshot that listen on the address of a lost machine."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import addresses
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Beside, Rendered, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import managed
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

OLD, NEW = "10.0.0.1", "10.0.0.11"


def rendered(number: int, address: str, model: str = "a") -> Rendered:
    """A release. Its environment also has the old address. This text is the operator's, and must not change."""
    instance = Instance("main", model, 5005, accelerator="cpu")
    stored = StoredModel(f"/mnt/models/{model}/1", "1")
    settings = Settings(uid=999, gid=997, address=address, environment={"NO_PROXY": OLD})
    beside = Beside(read_only=number % 2 == 0)
    return render(instance, [f"--seed={OLD}0"], stored, "vllm@sha256:00", settings, beside=beside, number=number)


def stage(root: Path, *numbers: int, address: str = OLD) -> Paths:
    """Releases of one instance; the last is active."""
    paths = Paths(root)
    for number in numbers:
        made = rendered(number, address, f"model-{number}")
        releases.stage(
            paths, "main", made.release.id, functools.partial(rendered, address=address, model=f"model-{number}"), print
        )
    releases.activate(paths, "main", numbers[-1])
    return paths


def own(address: str) -> bool:
    return address in (NEW, "0.0.0.0")


@pytest.fixture
def live(tmp_path: Path) -> Path:
    stage(tmp_path / "live", 1, address=NEW)
    return tmp_path / "live"


def test_every_kept_release_gets_the_address_of_this_machine(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1, 2)
    before = [releases.load(saved, "main", number).id for number in (1, 2)]
    moved, problems = addresses.move(saved.root, live, own)
    assert problems == []
    assert [each.words for each in moved] == [f"main, release {each}: {NEW} in place of {OLD}" for each in (1, 2)]
    for number in (1, 2):
        wanted = rendered(number, NEW, f"model-{number}")
        found = releases.text_of(saved, "main", number)
        assert (found.unit, found.environment) == (wanted.unit, wanted.environment), "as if made for this machine"
        assert found.release.engine_argv == wanted.release.engine_argv and found.release.address == NEW
        assert found.release.settings == wanted.release.settings and found.release.id not in before
        assert found.release.id == wanted.release.id, "site finds the release again, and a pin stays valid"
    assert releases.installed(saved, "main", 2), "the installed unit is that of the active release"


def test_checksums_of_a_proven_release_are_updated(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1, 2)
    releases.commit(saved, "main", 2)
    addresses.move(saved.root, live, own)
    assert managed.verify(saved, "main") == [] and releases.proven(saved, "main", 2)
    saved.env("main").write_text("edited")
    assert [wrong.path for wrong in managed.verify(saved, "main")] == [saved.env("main")]


def test_a_release_id_that_this_version_cannot_compute_still_changes(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1)
    kept = saved.release("main", 1) / "vllm@main.service"
    kept.write_text(kept.read_text().replace("Restart=always", "Restart=on-failure"))
    before = releases.load(saved, "main", 1).id
    addresses.move(saved.root, live, own)
    assert releases.load(saved, "main", 1).id not in (before, rendered(1, NEW, "model-1").release.id)


def test_a_second_restore_makes_the_same_files(tmp_path: Path, live: Path) -> None:
    first, second = (stage(tmp_path / name, 1, 2) for name in ("one", "two"))
    created = [releases.load(first, "main", 2).created, releases.load(second, "main", 2).created]
    addresses.move(first.root, live, own)
    # The first restore has written these files to the node.
    addresses.move(second.root, first.root, own)
    files = [sorted(path.relative_to(each.root) for path in each.root.rglob("*")) for each in (first, second)]
    assert created[0] == created[1] and files[0] == files[1]
    for path in files[0]:
        if (first.root / path).is_file():
            assert (first.root / path).read_text() == (second.root / path).read_text()


def test_a_release_that_listens_on_an_address_of_this_machine_is_unchanged(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1, address="0.0.0.0")
    assert addresses.move(saved.root, live, own) == ([], [])


def test_a_machine_without_a_release_at_an_address_of_its_own_is_refused(tmp_path: Path) -> None:
    saved = stage(tmp_path / "saved", 1)
    moved, (problem,) = addresses.move(saved.root, tmp_path / "blank", own)
    assert moved == [] and problem.startswith(
        f"release 1 of main listens on {OLD}, which is no address of this machine"
    )
    assert "baremetal.inference.site" in problem and releases.load(saved, "main", 1).address == OLD


def make_member(saved: Paths, number: int, address: str) -> Path:
    """Make a release of a gang out of a release. The other member reaches this node at `address`."""
    members = tuple(Member(*each) for each in (("a", 0, "10.0.0.9"), ("b", 1, address)))
    gang = Gang("main", 1, members, 5110, 29510, "0" * 64).to_dict()
    file = saved.release("main", number) / addresses.RELEASE_FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), "gang": gang}))
    return file


def test_a_gang_member_that_the_other_members_cannot_reach_is_refused(tmp_path: Path, live: Path) -> None:
    """An engine that listens on all addresses is refused, too. Only the active release, which would start, is named."""
    for name, address in (("one", OLD), ("any", "0.0.0.0")):
        saved = stage(tmp_path / name, 1, 2, address=address)
        before = [make_member(saved, number, "10.0.0.77") for number in (1, 2)]
        texts = [file.read_text() for file in before]
        moved, (problem,) = addresses.move(saved.root, live, own)
        assert moved == [] and [file.read_text() for file in before] == texts
        assert problem.startswith("release 2 of main: the other members of the gang reach this node at 10.0.0.77,")
        assert "give this machine 10.0.0.77" in problem


def test_a_gang_member_that_the_other_members_reach_gets_an_address_for_clients(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1)
    make_member(saved, 1, NEW)
    moved, problems = addresses.move(saved.root, live, own)
    assert problems == [] and [each.new for each in moved] == [NEW]
    release = releases.load(saved, "main", 1)
    assert release.address == NEW and release.gang is not None and release.gang.leader.address == "10.0.0.9"


def test_the_address_of_this_machine_is_found_in_a_release_that_is_only_staged(tmp_path: Path, live: Path) -> None:
    """Before a restore on a blank machine, the release of a gang is staged, but does not run."""
    Paths(live).active("main").unlink()
    moved, problems = addresses.move(stage(tmp_path / "saved", 1).root, live, own)
    assert problems == [] and [each.new for each in moved] == [NEW]


def test_a_release_with_a_damaged_gang_is_restored_as_it_is(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1, address="0.0.0.0")
    file = make_member(saved, 1, OLD)
    file.write_text(json.dumps({**json.loads(file.read_text()), "gang": {"name": "main"}}))
    assert addresses.move(saved.root, live, own) == ([], [])


def test_a_damaged_release_is_restored_as_it_is(tmp_path: Path, live: Path) -> None:
    saved = stage(tmp_path / "saved", 1)
    (saved.release("main", 1) / addresses.RELEASE_FILE).write_text("{")
    assert addresses.move(saved.root, live, own) == ([], [])
