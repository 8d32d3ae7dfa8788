# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module disks on a made-up node: what it formats, mounts and refuses, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disk_host, disk_setup
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import Mount
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disk_host import Host
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Device, DiskError, Signature
from ansible_collections.baremetal.inference.plugins.modules import disks

BY_ID = "/dev/disk/by-id"
WRITERS = ("mkfs.ext4", "mkfs.xfs", "mdadm", "vgcreate", "lvcreate", "mount", "timeout")


class Node(Host):
    """A node with disks a, b and c, whose tools do to this object what they would do to the disks."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.blocks: Any = self
        self.root = root
        self.known = {
            f"{BY_ID}/{name}": Device(f"{BY_ID}/{name}", name, f"8:{n}", 10**9) for n, name in enumerate("abc")
        }
        self.table: list[Mount] = []
        self.tools: set[str] = {*WRITERS, "pvs", "mount.nfs", "lvcreate"}
        self.done: list[str] = []
        self.failing = ""
        self.vgs: dict[str, str] = {}
        self.lvs: dict[str, bool] = {}
        self.dead_servers: set[str] = set()

    # --- what BlockDevices tells

    def device(self, path: str) -> Device:
        if path not in self.known:
            raise DiskError(f"{path} is not there")
        device = self.known[path]
        return replace(device, mounts=tuple(mount.path for mount in self.table if mount.number == device.number))

    def mounted_at(self, path: str) -> Mount | None:
        return next((mount for mount in reversed(self.table) if mount.path == path), None)

    def array(self, kernel: str) -> tuple[str, str, int]:
        return ("raid0", "clean", sum(kernel in device.holders for device in self.known.values()))

    @contextmanager
    def locked(self, _devices: list[Device]) -> Iterator[None]:
        self.done.append("lock")
        yield
        self.done.append("unlock")

    # --- what Host does

    def has(self, command: str) -> bool:
        return command in self.tools

    def settle(self) -> None:
        pass

    def immutable(self, _path: Path) -> bool:
        return False

    def protect(self, path: Path) -> None:
        self.done.append(f"protect {path}")

    def connect(self, server: str, port: int) -> str:
        return "timed out" if server in self.dead_servers else ""

    def groups(self) -> dict[str, str]:
        return self.vgs

    def volumes(self, _group: str) -> dict[str, bool]:
        return self.lvs

    def do(self, *command: str, timeout: int = 0) -> None:
        self.done.append(" ".join(command))
        if self.failing and self.failing in command:
            raise DiskError(f"{command[0]} failed")
        declared = {device.node: path for path, device in self.known.items()}
        command = tuple(declared.get(word, word) for word in command)
        if command[0].startswith("mkfs."):
            label, path = command[-2:]
            self.hold(path, Signature(command[0].removeprefix("mkfs."), label, f"uuid-{label}"))
        elif command[0] == "mount" and "-t" in command:
            self.table.append(Mount(self.known[command[-2]].number, "/", command[-1], command[2], command[-2]))
        elif command[0] == "timeout":
            self.table.append(Mount("0:50", "/", command[-1], "nfs4", command[-2]))
        elif command[0] == "mdadm":
            members = [word for word in command if word in self.known]
            for path in members:
                self.hold(path, Signature("linux_raid_member", "any:inf-fast", "0" * 32), holders=("md127",))
            self.known.setdefault("/dev/md127", Device("/dev/md127", "md127", "9:127", 2 * 10**9))
        elif command[0] == "vgcreate":
            for path in command[2:]:
                self.hold(path, Signature("LVM2_member"))
                self.vgs[self.known[path].number] = command[1]
        elif command[0] == "lvcreate":
            self.lvs["data"] = True
            self.known["/dev/inf-fast/data"] = Device("/dev/inf-fast/data", "dm-0", "252:0", 2 * 10**9)

    def hold(self, path: str, signature: Signature, **more: Any) -> None:
        self.known[path] = replace(self.known[path], signatures=(signature,), empty=False, **more)

    # --- the tests' view

    def run(self, check: bool = False, disks_: list[dict[str, Any]] | None = None, **params: Any) -> dict[str, Any]:
        entries = [{"options": ["noatime"], "directories": [], **DEFAULTS, **entry} for entry in disks_ or []]
        shares = [{"options": [], "version": "4.2", **entry} for entry in params.pop("shares", [])]
        module: Any = SimpleNamespace(params={"disks": entries, "shares": shares}, check_mode=check)
        return disks.run(module, self)

    def store(self, **changes: Any) -> dict[str, Any]:
        return {"name": "store", "devices": [f"{BY_ID}/a"], "path": f"{self.root}/models", **changes}

    def fast(self, join: str) -> dict[str, Any]:
        return self.store(name="fast", devices=[f"{BY_ID}/b", f"{BY_ID}/c"], join=join, path=f"{self.root}/fast")

    def writes(self) -> list[str]:
        return [line for line in self.done if line.split()[0] in WRITERS]


DEFAULTS = {"join": "none", "filesystem": "ext4", "adopt": False}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    (tmp_path / "etc").mkdir()
    for module in (disk_host, disks):
        monkeypatch.setattr(module, "FSTAB", tmp_path / "etc/fstab")
    monkeypatch.setattr(disk_setup, "MDADM_D", tmp_path / "etc/mdadm")
    (tmp_path / "etc/fstab").write_text("UUID=root / ext4 defaults 0 1\n")
    return Node(tmp_path)


def test_check_predicts_a_run_acts_and_the_second_changes_nothing(node: Node) -> None:
    wanted = [node.store(), node.fast("raid0")]
    before = node.fstab()
    predicted = node.run(check=True, disks_=wanted)
    assert predicted["changed"] and node.done == [] and node.fstab() == before
    assert any("format" in action and "/a " in action for action in predicted["actions"])
    assert node.run(disks_=wanted)["changed"]
    assert node.fstab().count("UUID=uuid-inf-") == 2 and node.fstab().startswith(before)
    node.done.clear()
    again = node.run(disks_=wanted)
    assert not again["changed"] and again["actions"] == [] and node.done == []


def test_a_device_is_looked_at_again_under_the_lock(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has used it between the decision and the format."""

    @contextmanager
    def taken_meanwhile(devices: list[Device]) -> Iterator[None]:
        node.hold(devices[0].path, Signature("ext4", "precious"))
        yield

    monkeypatch.setattr(node, "locked", taken_meanwhile)
    with pytest.raises(DiskError, match="precious"):
        node.run(disks_=[node.store()])
    assert not node.writes()


def test_nothing_is_done_to_any_disk_when_one_is_not_blank(node: Node) -> None:
    node.hold(f"{BY_ID}/c", Signature("ext4", "precious"))
    with pytest.raises(DiskError) as caught:
        node.run(disks_=[node.store(path="/"), node.fast("raid0"), node.store(name="gone", devices=[f"{BY_ID}/x"])])
    words = str(caught.value)
    assert words.startswith("Nothing was changed.") and not node.writes()
    assert "precious" in words and "must be absolute" in words and f"{BY_ID}/x is not there" in words


@pytest.mark.parametrize("join", ["raid0", "lvm"])
def test_devices_are_joined_and_then_formatted(node: Node, join: str) -> None:
    node.run(disks_=[node.fast(join)])
    volume = {"raid0": "/dev/md127", "lvm": "/dev/dm-0"}[join]
    assert [line.split()[0] for line in node.writes()][-2:] == ["mkfs.ext4", "mount"]
    assert f"mkfs.ext4 -q -m 0 -L inf-fast {volume}" in node.done
    # Where an array begins by default, nobody has looked whether its members are blank.
    assert join == "lvm" or any("--data-offset=1M" in line for line in node.done)
    assert not {"--force", "-F", "-f", "--yes", "-y", "--run"} & set(" ".join(node.done).split())


def test_a_join_that_was_cut_off_is_taken_up_again(node: Node) -> None:
    node.failing = "mkfs.ext4"
    with pytest.raises(DiskError, match="Done before that: join"):
        node.run(disks_=[node.fast("raid0")])
    node.failing = ""
    result = node.run(disks_=[node.fast("raid0")])
    assert result["actions"][0].startswith("format /dev/md127")
    assert sum("--create" in line for line in node.done) == 1


def test_a_node_that_was_installed_anew_finds_its_disks_again(node: Node) -> None:
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
    assert "assemble" in node.run(check=True, disks_=[node.fast("raid0")])["actions"][0]
    node.run(disks_=[node.fast("raid0")])
    assert [line.split()[:2] for line in node.writes()] == [["mdadm", "--assemble"], ["mount", "-t"]]


def test_adopting_mounts_and_never_formats(node: Node) -> None:
    node.hold(f"{BY_ID}/a", Signature("xfs", "data", "u1"))
    node.run(disks_=[node.store(adopt=True, filesystem="xfs")])
    assert [line.split()[0] for line in node.writes()] == ["mount"] and "UUID=u1" in node.fstab()


def test_a_mount_that_fails_leaves_the_old_fstab(node: Node) -> None:
    before = node.fstab()
    node.failing = "mount"
    with pytest.raises(DiskError, match="/etc/fstab is as it was"):
        node.run(disks_=[node.store()])
    assert node.fstab() == before
    assert node.done.index("systemctl daemon-reload") < node.done.index(node.writes()[-1])


def test_a_mount_that_would_hide_files_is_refused(node: Node) -> None:
    (node.root / "models").mkdir()
    (node.root / "models/weights").touch()
    with pytest.raises(DiskError, match="holds weights, which a mount would hide"):
        node.run(disks_=[node.store()])
    assert not node.writes()


def test_a_mount_point_or_a_disk_that_is_in_use_elsewhere_is_refused(node: Node) -> None:
    node.table.append(Mount("8:9", "/", f"{node.root}/models", "ext4", "/dev/sdz"))
    with pytest.raises(DiskError, match="/dev/sdz"):
        node.run(disks_=[node.store()])
    node.table[:] = [Mount("8:0", "/", "/srv", "ext4", "/dev/a")]
    node.hold(f"{BY_ID}/a", Signature("ext4", "inf-store", "u"))
    with pytest.raises(DiskError, match="is mounted at /srv"):
        node.run(disks_=[node.store()])
    assert not node.writes()


def test_one_device_under_two_names_is_found(node: Node) -> None:
    node.known[f"{BY_ID}/alias"] = replace(node.known[f"{BY_ID}/a"], path=f"{BY_ID}/alias")
    with pytest.raises(DiskError, match="are the same device"):
        node.run(disks_=[node.store(), node.store(name="other", devices=[f"{BY_ID}/alias"], path="/mnt/other")])
    assert not node.writes()


def test_new_options_are_a_remount(node: Node) -> None:
    node.run(disks_=[node.store()])
    node.done.clear()
    node.run(disks_=[node.store(options=["noatime", "commit=30"])])
    assert len(node.writes()) == 1 and "remount,noatime,commit=30" in node.writes()[0] and "commit=30" in node.fstab()


def test_directories_are_made_on_the_mount_and_put_right(node: Node) -> None:
    me, mine = str(os.getuid()), str(os.getgid())
    wanted = node.store(directories=[{"path": "a/b", "owner": me, "group": mine, "mode": "0750"}])
    node.run(disks_=[wanted])
    made = node.root / "models/a/b"
    assert made.stat().st_mode & 0o7777 == 0o750
    made.chmod(0o777)
    assert node.run(disks_=[wanted])["actions"] == [
        f"make the directories on {node.root}/models: a/b ({me}:{mine} 0750)"
    ]
    assert made.stat().st_mode & 0o7777 == 0o750


def test_a_users_symbolic_link_is_not_followed(node: Node) -> None:
    node.run(disks_=[node.store()])
    (node.root / "models/a").symlink_to(node.root / "etc")
    with pytest.raises(DiskError, match="a file or a symbolic link"):
        node.run(disks_=[node.store(directories=[{"path": "a"}])])


def test_an_owner_that_this_run_will_make_is_missed_only_where_it_counts(node: Node) -> None:
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


# --- NFS


def test_a_share_is_mounted_within_a_time_limit(node: Node) -> None:
    share = {"source": "nas:/x", "path": f"{node.root}/x"}
    assert node.run(shares=[share])["changed"]
    assert node.writes()[0].startswith("timeout --kill-after=5 40 mount -t nfs") and "retry=0" in node.writes()[0]
    assert "nas:/x" in node.fstab() and "retry=0" not in node.fstab()
    node.dead_servers.add("nas")
    assert not node.run(shares=[share])["changed"], "a server that went away later is not this run's business"


def test_a_share_that_waits_for_its_first_use_is_left_to_wait(node: Node) -> None:
    share = {"source": "nas:/x", "path": f"{node.root}/x"}
    node.run(shares=[share])
    node.table[:] = [Mount("0:40", "/", f"{node.root}/x", "autofs", "systemd-1")]
    node.dead_servers.add("nas")
    assert not node.run(shares=[share])["changed"]


def test_a_dead_server_is_found_before_any_disk_is_touched(node: Node) -> None:
    node.dead_servers.add("nas")
    with pytest.raises(DiskError, match="server nas does not answer on TCP port 2049"):
        node.run(disks_=[node.store()], shares=[{"source": "nas:/x", "path": "/mnt/x"}])
    assert not node.writes()


def test_what_is_declared_no_more_stays_and_is_reported(node: Node) -> None:
    node.run(disks_=[node.store()])
    node.done.clear()
    result = node.run(disks_=[])
    assert result["undeclared"] == [f"UUID=uuid-inf-store at {node.root}/models"] and not node.done
