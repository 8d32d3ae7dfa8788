# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module disks on a made-up node: what it predicts, changes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disk_setup
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import DiskError, Signature
from ansible_collections.baremetal.inference.tests.unit.plugins.fake_disks import BY_ID, Node, made_up_node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return made_up_node(tmp_path, monkeypatch)


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    wanted = [node.store(), node.fast("raid0")]
    before = node.fstab()
    predicted = node.run(check=True, disks_=wanted)
    assert predicted["changed"] and node.done == [] and node.fstab() == before
    assert any("format" in action and "/a " in action for action in predicted["differs"])
    assert node.run(disks_=wanted)["changed"]
    assert node.fstab().count("UUID=uuid-inf-") == 2 and node.fstab().startswith(before)
    node.done.clear()
    again = node.run(disks_=wanted)
    assert not again["changed"] and again["differs"] == [] and node.done == []


def test_no_disk_is_changed_if_one_disk_is_not_blank(node: Node) -> None:
    node.hold(f"{BY_ID}/c", Signature("ext4", "precious"))
    with pytest.raises(DiskError) as caught:
        node.run(disks_=[node.store(path="/"), node.fast("raid0"), node.store(name="gone", devices=[f"{BY_ID}/x"])])
    words = str(caught.value)
    assert words.startswith("Nothing was changed.") and not node.writes()
    assert "precious" in words and "must be absolute" in words and f"{BY_ID}/x is not there" in words


def test_an_error_of_the_system_is_a_problem_of_its_disk(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(path: str) -> list[str]:
        raise OSError(5, "Input/output error", path)

    (node.root / "models").mkdir()
    monkeypatch.setattr(disk_setup.os, "listdir", damaged)
    with pytest.raises(DiskError) as caught:
        node.run(disks_=[node.store(), node.store(name="gone", devices=[f"{BY_ID}/x"], path=f"{node.root}/gone")])
    words = str(caught.value)
    assert words.startswith("Nothing was changed.") and not node.writes()
    assert "Input/output error" in words and f"{BY_ID}/x is not there" in words


def test_a_join_that_was_cut_off_is_continued(node: Node) -> None:
    node.failing = "mkfs.ext4"
    with pytest.raises(DiskError, match="Done before that: join"):
        node.run(disks_=[node.fast("raid0")])
    node.failing = ""
    result = node.run(disks_=[node.fast("raid0")])
    assert result["differs"][0].startswith("format /dev/md127")
    assert sum("--create" in line for line in node.done) == 1


def test_a_missing_owner_is_an_error_of_a_run_and_not_of_check_mode(node: Node) -> None:
    wanted = node.store(directories=[{"path": "a", "owner": "no-such-user"}])
    assert node.run(check=True, disks_=[wanted])["changed"]
    with pytest.raises(DiskError, match="'no-such-user'"):
        node.run(disks_=[wanted])
    assert not node.writes()


def test_missing_tools_are_named_and_nothing_is_begun(node: Node) -> None:
    node.tools -= {"mkfs.ext4", "mdadm"}
    result = node.run(check=True, disks_=[node.fast("raid0")])
    assert result["packages"] == ["e2fsprogs", "mdadm"] and result["changed"]
    with pytest.raises(DiskError, match="e2fsprogs, mdadm"):
        node.run(disks_=[node.fast("raid0")])
    assert not node.writes()


def test_an_nfs_server_that_does_not_answer_is_refused_before_any_disk_is_changed(node: Node) -> None:
    node.dead_servers.add("nas")
    with pytest.raises(DiskError, match="server nas does not answer on TCP port 2049"):
        node.run(disks_=[node.store()], shares=[{"source": "nas:/x", "path": "/mnt/x"}])
    assert not node.writes()


def test_a_disk_that_is_no_longer_declared_stays_and_is_reported(node: Node) -> None:
    node.run(disks_=[node.store()])
    node.done.clear()
    result = node.run(disks_=[])
    assert result["undeclared"] == [f"UUID=uuid-inf-store at {node.root}/models"] and not node.done
