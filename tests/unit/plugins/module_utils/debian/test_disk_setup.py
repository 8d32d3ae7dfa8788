# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks and shares of a made-up node: formats, joins, mounts and refusals, and their order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import Mount
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Device, DiskError, Signature
from ansible_collections.baremetal.inference.tests.unit.plugins.fake_disks import BY_ID, Node, made_up_node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return made_up_node(tmp_path, monkeypatch)


def test_a_device_is_checked_again_under_the_lock(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program has made a file system between the decision and the format."""

    @contextmanager
    def taken_meanwhile(devices: list[Device]) -> Iterator[None]:
        node.hold(devices[0].path, Signature("ext4", "precious"))
        yield

    monkeypatch.setattr(node, "locked", taken_meanwhile)
    with pytest.raises(DiskError, match="precious"):
        node.run(disks_=[node.store()])
    assert not node.writes()


@pytest.mark.parametrize("join", ["raid0", "lvm"])
def test_devices_are_joined_and_then_formatted(node: Node, join: str) -> None:
    node.run(disks_=[node.fast(join)])
    volume = {"raid0": "/dev/md127", "lvm": "/dev/dm-0"}[join]
    assert [line.split()[0] for line in node.writes()][-2:] == ["mkfs.ext4", "mount"]
    assert f"mkfs.ext4 -q -m 0 -L inf-fast {volume}" in node.done
    # By default, mdadm leaves up to 128 MiB free. Only the first 4 MiB of a device are checked, so the array could
    # begin with old data.
    assert join == "lvm" or any("--data-offset=1M" in line for line in node.done)
    assert not {"--force", "-F", "-f", "--yes", "-y", "--run"} & set(" ".join(node.done).split())


def test_a_reinstalled_node_mounts_its_disks_without_a_format(node: Node) -> None:
    wanted = [node.store(), node.fast("lvm")]
    node.run(disks_=wanted)
    node.table.clear()
    (node.root / "etc/fstab").write_text("")
    node.done.clear()
    result = node.run(disks_=wanted)
    assert result["changed"] and {line.split()[0] for line in node.writes()} == {"mount"}


def test_an_array_that_is_not_assembled_is_assembled(node: Node) -> None:
    for name in "bc":
        node.hold(f"{BY_ID}/{name}", Signature("linux_raid_member", "any:inf-fast", "0" * 32))
    node.known["/dev/md127"] = Device(
        "/dev/md127", "md127", "9:127", 10, signatures=(Signature("ext4", "inf-fast", "u"),)
    )
    assert "assemble" in node.run(check=True, disks_=[node.fast("raid0")])["differs"][0]
    node.run(disks_=[node.fast("raid0")])
    assert [line.split()[:2] for line in node.writes()] == [["mdadm", "--assemble"], ["mount", "-t"]]


def test_an_adopted_disk_is_mounted_and_never_formatted(node: Node) -> None:
    node.hold(f"{BY_ID}/a", Signature("xfs", "data", "u1"))
    node.run(disks_=[node.store(adopt=True, filesystem="xfs")])
    assert [line.split()[0] for line in node.writes()] == ["mount"] and "UUID=u1" in node.fstab()


def test_a_mount_that_fails_leaves_the_old_fstab(node: Node) -> None:
    before = node.fstab()
    node.failing = "mount"
    with pytest.raises(DiskError, match="/etc/fstab is as before"):
        node.run(disks_=[node.store()])
    assert node.fstab() == before
    assert node.done.index("systemctl daemon-reload") < node.done.index(node.writes()[-1])


def test_a_failed_restore_of_fstab_is_reported(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.failing = "mount"
    write, texts = node.write_fstab, []

    def once(text: str) -> None:
        texts.append(text)
        if len(texts) > 1:
            raise OSError(28, "No space left on device")
        write(text)

    monkeypatch.setattr(node, "write_fstab", once)
    with pytest.raises(DiskError, match=r"Restoring the old /etc/fstab failed, too: .*No space left"):
        node.run(disks_=[node.store()])


def test_a_mount_that_would_hide_files_is_refused(node: Node) -> None:
    (node.root / "models").mkdir()
    (node.root / "models/weights").touch()
    with pytest.raises(DiskError, match="contains weights, which the mount would hide"):
        node.run(disks_=[node.store()])
    assert not node.writes()


def test_a_mount_point_or_a_disk_that_is_in_use_elsewhere_is_refused(node: Node) -> None:
    node.table.append(Mount("8:9", "/", f"{node.root}/models", "ext4", "/dev/sdz"))
    with pytest.raises(DiskError, match="/dev/sdz"):
        node.run(disks_=[node.store()])
    node.table[:] = [Mount("8:0", "/", "/srv", "ext4", "/dev/a")]
    node.hold(f"{BY_ID}/a", Signature("ext4", "inf-store", "u"))
    with pytest.raises(DiskError, match="is already mounted at /srv"):
        node.run(disks_=[node.store()])
    assert not node.writes()


def test_one_device_under_two_names_is_found(node: Node) -> None:
    node.known[f"{BY_ID}/alias"] = replace(node.known[f"{BY_ID}/a"], path=f"{BY_ID}/alias")
    with pytest.raises(DiskError, match="are the same device"):
        node.run(disks_=[node.store(), node.store(name="other", devices=[f"{BY_ID}/alias"], path="/mnt/other")])
    assert not node.writes()


def test_new_mount_options_cause_a_remount(node: Node) -> None:
    node.run(disks_=[node.store()])
    node.done.clear()
    node.run(disks_=[node.store(options=["noatime", "commit=30"])])
    assert len(node.writes()) == 1 and "remount,noatime,commit=30" in node.writes()[0] and "commit=30" in node.fstab()


def test_directories_are_created_on_the_mount_and_repaired(node: Node) -> None:
    me, mine = str(os.getuid()), str(os.getgid())
    wanted = node.store(directories=[{"path": "a/b", "owner": me, "group": mine, "mode": "0750"}])
    node.run(disks_=[wanted])
    made = node.root / "models/a/b"
    assert made.stat().st_mode & 0o7777 == 0o750
    made.chmod(0o777)
    assert node.run(disks_=[wanted])["differs"] == [
        f"create the directories on {node.root}/models: a/b ({me}:{mine} 0750)"
    ]
    assert made.stat().st_mode & 0o7777 == 0o750


def test_a_users_symbolic_link_is_not_followed(node: Node) -> None:
    node.run(disks_=[node.store()])
    (node.root / "models/a").symlink_to(node.root / "etc")
    with pytest.raises(DiskError, match="a file or a symbolic link"):
        node.run(disks_=[node.store(directories=[{"path": "a"}])])


def test_a_share_is_mounted_within_a_time_limit(node: Node) -> None:
    share = {"source": "nas:/x", "path": f"{node.root}/x"}
    assert node.run(shares=[share])["changed"]
    assert node.writes()[0].startswith("timeout --kill-after=5 40 mount -t nfs") and "retry=0" in node.writes()[0]
    assert "nas:/x" in node.fstab() and "retry=0" not in node.fstab()
    node.dead_servers.add("nas")
    assert not node.run(shares=[share])["changed"], "a server that stops later changes nothing"


def test_a_share_that_waits_for_its_first_access_is_unchanged(node: Node) -> None:
    share = {"source": "nas:/x", "path": f"{node.root}/x"}
    node.run(shares=[share])
    node.table[:] = [Mount("0:40", "/", f"{node.root}/x", "autofs", "systemd-1")]
    node.dead_servers.add("nas")
    assert not node.run(shares=[share])["changed"]
