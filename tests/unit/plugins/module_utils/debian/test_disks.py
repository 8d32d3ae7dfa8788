# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blank disks, this collection's disks, and mistakes in a declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disks as dk
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Device, Disk, Share, Signature

BY_ID = "/dev/disk/by-id"
BLANK = Device(f"{BY_ID}/nvme-A", "nvme0n1", "259:0", size=3_840_755_982_336, model="Vendor X")
STORE = Disk("store", (BLANK.path,), "/mnt/models")
ENTRY: dict[str, Any] = {
    "name": "store",
    "devices": [BLANK.path],
    "path": "/mnt/models",
    "join": "none",
    "filesystem": "ext4",
    "options": ["noatime"],
    "directories": [],
    "adopt": False,
}


# Each of these alone keeps a device from being formatted.
OBSTACLES: list[tuple[dict[str, Any], str]] = [
    ({"signatures": (Signature("ext4", "data", "aa-bb"),)}, "ext4 (label 'data', UUID aa-bb)"),
    ({"signatures": (Signature("LVM2_member"),)}, "LVM2_member"),
    ({"partitions": ("nvme0n1p1",)}, "the partitions nvme0n1p1"),
    ({"holders": ("dm-3",)}, "dm-3 uses it"),
    ({"holders": ("dm-3", "md0")}, "dm-3, md0 use it"),
    ({"mounts": ("/srv",)}, "mounted at /srv"),
    ({"swap": True}, "swap in use"),
    ({"read_only": True}, "read-only"),
    ({"size": 0}, "no size"),
    ({"busy": True}, "exclusive use"),
    ({"empty": False}, "contain unknown data"),
    ({"doubts": ("blkid cannot tell",)}, "blkid cannot tell"),
]


@pytest.mark.parametrize(("change", "words"), OBSTACLES)
@pytest.mark.parametrize("adopt", [False, True])
def test_a_device_that_is_not_blank_is_refused(change: dict[str, Any], words: str, adopt: bool) -> None:
    device = replace(BLANK, **change)
    disk = replace(STORE, filesystem="xfs", adopt=adopt)
    with pytest.raises(dk.DiskError) as caught:
        dk.volume_is_blank(disk, device)
    assert words in str(caught.value) and "is not changed" in str(caught.value)
    with pytest.raises(dk.DiskError):
        dk.members_are_blank(disk, [BLANK, device])


def test_every_field_of_a_device_that_can_differ_is_an_obstacle() -> None:
    """A new field of Device needs an obstacle, or an entry in `described`."""
    described = {"path", "kernel", "number", "model"}
    assert {key for change, _words in OBSTACLES for key in change} == set(Device.__dataclass_fields__) - described


def test_a_blank_device_is_formatted_unless_adopt_is_set() -> None:
    assert dk.volume_is_blank(STORE, BLANK)
    with pytest.raises(dk.DiskError, match="nothing to adopt"):
        dk.volume_is_blank(replace(STORE, adopt=True), BLANK)


@pytest.mark.parametrize(
    ("signatures", "changes", "own"),
    [
        ([Signature("ext4", "inf-store")], {}, True),
        ([Signature("ext4", "inf-other")], {}, False),
        ([Signature("xfs", "inf-store")], {}, False),
        ([Signature("xfs", "data")], {"adopt": True, "filesystem": "xfs"}, True),
        ([Signature("xfs", "data")], {"adopt": True}, False),
        ([Signature("ext4", "inf-store"), Signature("gpt")], {"adopt": True}, False),
        ([], {"adopt": True}, False),
    ],
)
def test_our_own_file_system_is_recognised_by_label_and_kind(
    signatures: list[Signature], changes: dict[str, Any], own: bool
) -> None:
    assert dk.is_own(replace(STORE, **changes), replace(BLANK, signatures=tuple(signatures))) is own


def test_a_refusal_says_how_to_adopt_or_discard_the_data() -> None:
    foreign = replace(BLANK, signatures=(Signature("xfs", "data", "u1"),), mounts=("/srv",))
    with pytest.raises(dk.DiskError) as caught:
        dk.volume_is_blank(STORE, foreign)
    words = str(caught.value)
    assert f"{BLANK.path} (nvme0n1, 3.84 TB, Vendor X)" in words
    assert "adopt: true and filesystem: xfs" in words and f"wipefs --all {BLANK.path} && dd" in words
    assert words.index("umount") < words.index("wipefs")


def test_an_array_is_ours_only_as_a_whole() -> None:
    member = Signature("linux_raid_member", "any:inf-store", "u1")
    devices = [replace(BLANK, signatures=(member,)), replace(BLANK, number="259:1", signatures=(member,))]
    assert dk.is_own_array(STORE, devices)
    for other in (
        Signature("linux_raid_member", "any:inf-store", "u2"),
        Signature("linux_raid_member", "host:0", "u1"),
    ):
        assert not dk.is_own_array(STORE, [devices[0], replace(BLANK, signatures=(other,))])
    assert not dk.is_own_array(STORE, [devices[0], BLANK])


def test_a_volume_group_is_ours_only_as_a_whole() -> None:
    devices = [BLANK, replace(BLANK, number="259:1")]
    groups = {"259:0": "inf-store", "259:1": "inf-store", "8:0": "system"}
    assert dk.is_own_group(STORE, devices, groups)
    assert not dk.is_own_group(STORE, devices, {**groups, "8:16": "inf-store"})
    assert not dk.is_own_group(STORE, devices, {**groups, "259:1": "other"})
    assert not dk.is_own_group(STORE, devices, {})


def test_the_arrays_line_has_the_uuid_as_mdadm_writes_it() -> None:
    text = dk.array_line(STORE, "7a2976ed-155e-0bd9-f062-965ec7d03d18")
    assert text.endswith("ARRAY /dev/md/inf-store metadata=1.2 UUID=7a2976ed:155e0bd9:f062965e:c7d03d18\n")


def test_no_line_of_fstab_can_block_a_boot() -> None:
    for line in (STORE.line("aa"), Share("nas:/x", "/mnt/x").line()):
        assert "nofail" in line.options and any("-timeout=" in option for option in line.options)
    options = replace(STORE, options=("x-systemd.device-timeout=9s",)).line("aa").options
    assert [option for option in options if "device-timeout" in option] == ["x-systemd.device-timeout=9s"]
    assert {"_netdev", "x-systemd.automount", "vers=4.2"} < set(Share("nas:/x", "/mnt/x").line().options)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "workspace"}, "name: 'workspace'"),
        ({"name": "Models"}, "name: 'Models'"),
        ({"devices": ["/dev/nvme0n1"]}, "kernel names can change"),
        ({"devices": [f"{BY_ID}/../../nvme0n1"]}, "kernel names can change"),
        ({"devices": []}, "name at least one"),
        ({"devices": [f"{BY_ID}/a", f"{BY_ID}/b"]}, "must be raid0 or lvm for several devices"),
        ({"devices": [f"{BY_ID}/a", f"{BY_ID}/a"], "join": "lvm"}, "more than once"),
        ({"join": "raid0"}, "is for several devices"),
        ({"devices": [f"{BY_ID}/a", f"{BY_ID}/b"], "join": "lvm", "adopt": True}, "adopt: True"),
        ({"path": "mnt/models"}, "must be absolute"),
        ({"path": "/mnt/../etc"}, "must be absolute"),
        ({"path": "/"}, "must be absolute"),
        ({"path": "/mnt/models/"}, "must be absolute"),
        ({"options": ["noatime,discard"]}, "a list of options"),
        ({"options": ["noauto"]}, "for the role to decide"),
        ({"directories": [{"path": "../x"}]}, "must be relative"),
        ({"directories": [{"path": "/x"}]}, "must be relative"),
        ({"directories": [{"path": "x", "mode": "493"}]}, "four octal digits"),
        ({"directories": [{"path": "x"}, {"path": "x"}]}, "more than once"),
    ],
)
def test_each_mistake_in_a_disk_is_found(changes: dict[str, Any], words: str) -> None:
    _disks, problems = dk.declared_disks([{**ENTRY, **changes}])
    assert [str(problem) for problem in problems if words in str(problem)], list(map(str, problems))


def test_a_good_declaration_has_no_mistakes() -> None:
    directories = [{"path": "."}, {"path": "a/b", "owner": "x", "group": "y", "mode": "0750"}]
    by_path = "/dev/disk/by-path/pci-0000:01:00.0-nvme-1"
    entries = [{**ENTRY, "directories": directories}, {**ENTRY, "name": "nvme", "devices": [by_path], "path": "/mnt"}]
    disks, problems = dk.declared_disks(entries)
    assert not problems and [disk.path for disk in disks] == ["/mnt", "/mnt/models"], "parent mount points come first"
    shares, problems = dk.declared_shares([{"source": "[fd00::1]:/x", "path": "/srv/x", "options": [], "version": "3"}])
    assert not problems and not dk.path_problems(disks, shares) and shares[0].server == "fd00::1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "/export"}, "SERVER:/EXPORT"),
        ({"source": "nas:export"}, "SERVER:/EXPORT"),
        ({"options": ["vers=3"]}, "use version"),
        ({"path": "relative"}, "must be absolute"),
    ],
)
def test_each_mistake_in_a_share_is_found(changes: dict[str, Any], words: str) -> None:
    good = {"source": "nas:/x", "path": "/mnt/x", "options": [], "version": "4.2"}
    _shares, problems = dk.declared_shares([{**good, **changes}])
    assert words in str(problems[0])


def test_a_path_declared_twice_or_below_a_share_is_a_problem() -> None:
    share = Share("nas:/x", "/mnt/models")
    assert "more than once" in str(dk.path_problems([STORE], [share])[0])
    assert "below the NFS mount" in str(dk.path_problems([replace(STORE, path="/mnt/models/a")], [share])[0])


@pytest.mark.parametrize(
    ("options", "port"),
    [((), 2049), (("port=20049",), 20049), (("proto=udp",), 0), (("port=²",), 0), (("proto=tcp6", "port=0"), 2049)],
)
def test_the_port_of_an_nfs_server_depends_on_the_mount_options(options: tuple[str, ...], port: int) -> None:
    assert Share("nas:/x", "/mnt/x", options).port == port


@pytest.mark.parametrize(("size", "text"), [(512, "512 B"), (536_870_912, "537 MB"), (15_360_950_534_144, "15.4 TB")])
def test_sizes_are_written_as_on_the_drive(size: int, text: str) -> None:
    assert dk.human(size) == text
